#include "tests/support/core/audit_log.h"

#include <string>

#include <doctest/doctest.h>

using dhc::test::AuditLog;
using nlohmann::json;

namespace {

constexpr auto kOurs = "system:serviceaccount:device-health-system:device-health-controller";
constexpr auto kOther = "system:serviceaccount:device-health-system:without-a-verb-1";

json eviction(const std::string& user, const std::string& uid, unsigned status = 201) {
  return {{"level", "RequestResponse"},
          {"stage", "ResponseComplete"},
          {"verb", "create"},
          {"requestURI", "/api/v1/namespaces/default/pods/a/eviction"},
          {"userAgent", "device-health-controller/0.1.0"},
          {"user", {{"username", user}}},
          {"responseStatus", {{"code", status}}},
          {"requestObject", {{"deleteOptions", {{"preconditions", {{"uid", uid}}}}}}}};
}

/// The names of what these lines break, in order.
std::string broken(std::initializer_list<json> lines) {
  AuditLog log;
  std::string names;
  for (const auto& line : lines) log.take(line.dump());
  for (const auto& text : log.take_broken()) {
    const auto name = text.find(": I");
    names += name == std::string::npos ? "unjudged " : text.substr(name + 2, text.find(':', name + 1) - name - 2) + " ";
  }
  return names;
}

json with(json event, const char* key, json value) {
  event[key] = std::move(value);
  return event;
}

}  // namespace

TEST_CASE("The audit log of every account that the program speaks for is judged, and of all of them as of one") {
  CHECK(broken({eviction(kOurs, "u1"), eviction(kOther, "u2")}).empty());
  CHECK(broken({eviction(kOurs, "")}) == "I1 ");
  CHECK(broken({eviction(kOther, "")}) == "I1 ");
  CHECK(broken({eviction(kOurs, "u1"), eviction(kOther, "u1")}) == "I2 ");
}

TEST_CASE("Who calls himself otherwise is not the program, whatever his account") {
  AuditLog log;
  log.take(with(eviction(kOurs, ""), "userAgent", "tests/1").dump());
  CHECK(log.take_broken().empty());
  CHECK(log.accounts().empty());
}

TEST_CASE("A log without a request of the program knows no account, and a read is enough for one") {
  AuditLog log;
  CHECK(log.accounts().empty());
  log.take(with(eviction(kOther, ""), "verb", "list").dump());
  REQUIRE(log.accounts().contains(kOther));
  CHECK(log.accounts().at(kOther).requests == 1);
  CHECK(log.accounts().at(kOther).writes == 0);
  CHECK(log.take_broken().empty());
}

TEST_CASE("A write that nobody can judge is broken, but for one that was refused before it was read") {
  auto bare = eviction(kOurs, "");
  bare.erase("requestObject");
  CHECK(broken({with(bare, "level", "Metadata")}) == "unjudged ");
  CHECK(broken({eviction("system:serviceaccount:elsewhere:somebody", "u1")}) == "unjudged ");
  CHECK(broken({with(bare, "responseStatus", {{"code", 403}})}).empty());
  CHECK(broken({eviction("test-administrator", "")}).empty());  // the command `uninstall`
}

TEST_CASE("The state of 0.1.0 is ours only where 0.1.0 has run, and all else of it is judged") {
  auto state = with(eviction(kOurs, ""), "verb", "patch");
  state["requestURI"] = "/api/v1/namespaces/device-health-system/configmaps/device-health-state?force=true";
  state["requestObject"] = {{"data", {{"devices.json", "{}"}}}};
  CHECK(broken({state}) == "I14 ");
  AuditLog log;
  log.let_earlier_release();
  log.take(state.dump());
  CHECK(log.take_broken().empty());
  log.take(eviction(kOurs, "").dump());
  CHECK(log.take_broken().size() == 1);
}

TEST_CASE("A line that was cut off is counted, and the rest is read") {
  AuditLog log;
  log.take(R"({"stage":"Respon)");
  log.take(eviction(kOurs, "").dump());
  CHECK(log.unread() == 1);
  CHECK(log.take_broken().size() == 1);
}
