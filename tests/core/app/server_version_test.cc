#include "app/server_version.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc::test {

namespace {
std::string body(std::string_view version) {
  return fmt::format(R"({{"major":"1","minor":"36","gitVersion":"{}","platform":"linux/amd64"}})", version);
}
}  // namespace

TEST_CASE("schedulers of 1.36 before its third patch cannot live with rules, all others can") {
  for (const char* version : {"v1.36.0", "v1.36.1", "v1.36.2", "v1.36.2+k3s1", "v1.36.2-gke.1000", "v1.36.0-rc.1"}) {
    CAPTURE(version);
    const auto warning = warning_of_rules(body(version));
    REQUIRE(warning);
    CHECK(warning->starts_with(fmt::format("the API server is {}: ", version)));
    CHECK(warning->find("older than v1.36.3") != std::string::npos);
  }
  for (const char* version :
       {"v1.36.3", "v1.36.3+k3s1", "v1.36.10", "v1.35.4", "v1.35.99", "v1.37.0", "v1.37.0-alpha.1", "v2.0.0"}) {
    CAPTURE(version);
    CHECK_FALSE(warning_of_rules(body(version)));
  }
}

TEST_CASE("kubelets below 1.36 report no health unless the gate is on, and later ones do") {
  for (const char* version : {"v1.35.4", "v1.35.99+k3s1", "v1.34.0", "v1.9.0", "v0.36.0"}) {
    CAPTURE(version);
    const auto warning = warning_of_reports(body(version));
    REQUIRE(warning);
    CHECK(warning->starts_with(fmt::format("the API server is {}: ", version)));
    CHECK(warning->find("unless the gate ResourceHealthStatus is on") != std::string::npos);
  }
  for (const char* version : {"v1.36.0", "v1.36.0-alpha.1", "v1.37.1", "v2.0.0"}) {
    CAPTURE(version);
    CHECK_FALSE(warning_of_reports(body(version)));
  }
}

TEST_CASE("a version that cannot be read warns of nothing") {
  for (const char* version :
       {"", "1.36.1", "v1.36", "v1.36.", "v1.36.x", "v-1.36.1", "v1.36.99999999999999999999", "main"}) {
    CAPTURE(version);
    CHECK_FALSE(warning_of_rules(body(version)));
    CHECK_FALSE(warning_of_reports(body(version)));
  }
  for (const char* text : {"", "[]", "{}", "not JSON", R"({"gitVersion":7})"}) {
    CAPTURE(text);
    CHECK_FALSE(warning_of_rules(text));
    CHECK_FALSE(warning_of_reports(text));
  }
}

}  // namespace dhc::test
