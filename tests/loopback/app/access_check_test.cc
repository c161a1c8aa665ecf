#include "app/access_check.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/core/fixtures.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/no_credentials.h"

using namespace dhc;
using namespace dhc::test;

namespace {

/// What is logged about a server that says this of its version.
std::vector<std::string> lines_about(const std::string& answer, Mode mode = Mode::Enforce) {
  Loopback loopback([&](ServerConnection& c) {
    if (c.read_request().find("GET /version ") != std::string::npos) c.send(answer);
  });
  const k8s::Client client(std::move(loopback.transport), std::make_shared<NoCredentials>(), "test");
  std::vector<std::string> lines;
  Log log(LogFormat::Text, LogLevel::Warn, [&](std::string_view line) { lines.emplace_back(line); });
  check_version(client, mode, log, {});
  return lines;
}

}  // namespace

TEST_CASE("a scheduler that cannot live with rules is named at start, with the first good patch") {
  const auto lines = lines_about(ok(R"({"gitVersion":"v1.36.1"})"));
  REQUIRE(lines.size() == 1);
  CHECK(lines.front().find("v1.36.3") != std::string::npos);
  CHECK(lines_about(ok(R"({"gitVersion":"v1.36.1"})"), Mode::Observe).empty());
}

TEST_CASE("a cluster whose kubelets report nothing by default is told so at start, in observe mode too") {
  for (const auto mode : {Mode::Observe, Mode::Enforce}) {
    const auto lines = lines_about(ok(R"({"gitVersion":"v1.35.4"})"), mode);
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().find("unless the gate ResourceHealthStatus is on") != std::string::npos);
  }
}

TEST_CASE("a server that does not say its version is not spoken of") {
  CHECK(lines_about(ok(R"({"gitVersion":"v1.37.1"})")).empty());
  CHECK(lines_about("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").empty());
}
