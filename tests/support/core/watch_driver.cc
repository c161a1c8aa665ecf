#include "tests/support/core/watch_driver.h"

#include <utility>
#include <variant>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc::test {

using namespace dhc::k8s;

namespace {

bool is_page(const std::string& target) { return target.find("limit=500") != std::string::npos; }

Object object_of(Kind kind, const std::string& name, const std::string& version) {
  Meta meta;
  meta.name = name;
  meta.uid = "uid-" + name;
  meta.resource_version = version;
  if (kind == Kind::DeviceTaintRule) {
    DeviceTaintRule rule;
    rule.meta = meta;
    return rule;
  }
  Node node;
  node.meta = meta;
  return node;
}

}  // namespace

WatchDriver::WatchDriver(Kind kind, double chance_of_all)
    : chance(chance_of_all), machine(WatchTarget{.kind = kind, .ns = {}, .name = {}}), kind_(kind) {}

std::string WatchDriver::request() {
  for (int steps = 0; steps < 4; ++steps) {
    auto step = machine.next(now, chance);
    if (auto* const list = std::get_if<SendList>(&step)) {
      const bool is_check = list->request.target.find("limit=1") != std::string::npos && !is_page(list->request.target);
      if (!is_check || server_version.empty()) return list->request.target;
      page({}, server_version, "more");
      continue;
    }
    if (auto* const stream = std::get_if<OpenStream>(&step)) return stream->request.target;
    if (std::holds_alternative<StopWatching>(step)) return {};
    const auto wait = std::get<WaitFor>(step).duration;
    if (wait <= Millis::zero()) FAIL("a wait of nothing");
    // One millisecond early it still waits.
    now.mono += wait - Millis(1);
    if (!std::holds_alternative<WaitFor>(machine.next(now, chance))) FAIL("the machine does not wait to the end");
    now.mono += Millis(1);
    waited += wait;
  }
  FAIL("the machine waits again after its wait");
  return {};
}

void WatchDriver::close() { machine.ended(std::nullopt, now, chance, out); }

void WatchDriver::fail(ErrorKind kind, std::optional<Millis> retry_after) {
  machine.ended(Error{.kind = kind, .message = "scripted", .retry_after = retry_after}, now, chance, out);
}

bool WatchDriver::event(WatchEvent event) { return machine.event(std::move(event), now, out); }

bool WatchDriver::added(const std::string& name, const std::string& version) {
  return event({.resource_version = version, .what = Changed{object_of(kind_, name, version)}});
}

bool WatchDriver::deleted(const std::string& name, const std::string& version) {
  return event({.resource_version = version, .what = Deleted{.ns = {}, .name = name, .uid = "uid-" + name}});
}

bool WatchDriver::bookmark(const std::string& version, bool end) {
  return event({.resource_version = version, .what = Bookmark{.initial_events_end = end}});
}

bool WatchDriver::error(int code) {
  return event({.resource_version = {}, .what = ErrorStatus{fmt::format(R"({{"kind":"Status","code":{}}})", code)}});
}

bool WatchDriver::bad(const std::string& name, const std::string& uid) {
  return event({.resource_version = {}, .what = BadObject{.ns = {}, .name = name, .uid = uid, .why = "scripted"}});
}

void WatchDriver::page(std::vector<std::string> names, const std::string& version, const std::string& continue_token) {
  ListPage page{.resource_version = version, .continue_token = continue_token, .objects = {}, .bad = {}};
  for (const auto& name : names) page.objects.push_back(object_of(kind_, name, version));
  machine.page(std::move(page), now, chance, out);
}

void WatchDriver::sync(const std::string& version) {
  REQUIRE(request().find("sendInitialEvents") != std::string::npos);
  REQUIRE(added("node-a", version));
  REQUIRE(bookmark(version, true));
}

void WatchDriver::sync_by_pages(const std::string& version) {
  REQUIRE_FALSE(request().empty());
  fail(ErrorKind::Invalid);
  REQUIRE(request().find("limit=500") != std::string::npos);
  page({"node-a"}, version);
}

std::vector<std::string> WatchDriver::delivered() {
  std::vector<std::string> words;
  for (const auto& delivery : std::exchange(out, {})) {
    if (const auto* const word = std::get_if<Told>(&delivery)) {
      told.push_back(*word);
    } else {
      words.push_back(word_of(delivery));
    }
  }
  return words;
}

std::string word_of(const Delivery& delivery) {
  if (const auto* const snapshot = std::get_if<Snapshot>(&delivery)) {
    if (!snapshot->served) return "NotServed";
    std::string names;
    for (const auto& object : snapshot->objects) names += (names.empty() ? "" : ",") + meta_of(object).name;
    return "Snapshot(" + names + ")";
  }
  if (const auto* const upsert = std::get_if<Upsert>(&delivery)) return "+" + meta_of(upsert->object).name;
  if (const auto* const remove = std::get_if<Remove>(&delivery)) return "-" + remove->name;
  if (const auto* const bad = std::get_if<Unreadable>(&delivery)) return "?" + bad->name;
  return {};
}

}  // namespace dhc::test
