// The status that readers without a way to the leader's pod are told: what goes in comes out, within its limit.
#include "domain/contract/cluster_status.h"

#include <array>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace {

using namespace dhc;

WallTime at(std::string_view text) { return parse_rfc3339(text).value(); }

StatusDevice device_named(const std::string& name) {
  return {.device = "gpu.example.com/node-a/" + name,
          .node = "node-a",
          .health = "Unhealthy",
          .since = at("2026-11-20T12:00:00Z"),
          .said = "Xid 79: the GPU is lost",
          .policy = "gpus",
          .holders = {"ml/train-0"},
          .taint = "rule dhc-node-a-" + name,
          .opened_at = at("2026-11-20T12:01:00Z"),
          .incidents = 2,
          .penalty = 1.5,
          .penalty_at = at("2026-11-20T12:01:00Z"),
          .history = {{.at = at("2026-11-01T00:00:00Z"), .said = "Xid 48"},
                      {.at = at("2026-11-20T12:00:00Z"), .said = "Xid 79"}}};
}

StatusVerdict verdict_on(const std::string& device, const std::string& pod) {
  return {.kind = "Pod",
          .ns = "ml",
          .name = pod,
          .node = "node-a",
          .job = "train",
          .device = device,
          .policy = "gpus",
          .mode = "enforce",
          .reason = "WaitingForEvictAfter",
          .gate = "window",
          .message = "the incident is open; evict.after has not passed yet",
          .since = at("2026-11-20T12:00:00Z"),
          .next_at = at("2026-11-20T12:02:00Z")};
}

ClusterStatus small() {
  ClusterStatus status{
      .program = "0.1.0",
      .mode = "enforce",
      .pause =
          StatusPause{.why = "paused until 2026-11-20T13:00:00Z: network change", .until = at("2026-11-20T13:00:00Z")},
      .pauses = {{.why = "paused until 2026-11-20T14:00:00Z for node a: r", .until = at("2026-11-20T14:00:00Z")}},
      .devices_unhealthy = 1,
      .devices_unknown = 2,
      .incidents_open = 1,
      .quarantined = 3,
      .policies = {{.name = "gpus", .mode = "enforce", .quarantine_above = 2, .half_life = std::chrono::hours(720)}},
      .verdicts = {},
      .devices = {device_named("gpu-0")},
      .cut = {}};
  status.verdicts = {{.kind = "Brake",
                      .ns = {},
                      .name = "gpu.example.com",
                      .node = {},
                      .device = {},
                      .policy = {},
                      .mode = {},
                      .reason = "BrakeEngaged",
                      .gate = {},
                      .message = "3 of 8",
                      .since = at("2026-11-20T12:00:00Z"),
                      .next_at = {}},
                     verdict_on(status.devices[0].device, "train-0")};
  return status;
}

/// So many devices, each with the verdict of its pod; behind them so many minor ones.
ClusterStatus large(int devices, int minor, std::size_t message) {
  auto status = small();
  status.devices.clear();
  for (int i = 0; i < devices + minor; ++i) {
    auto device = device_named(fmt::format("gpu-{}", i));
    device.is_minor = i >= devices;
    device.said = std::string(message, 's');
    auto verdict = verdict_on(device.device, fmt::format("train-{}", i));
    verdict.message = std::string(message, 'm');
    status.verdicts.push_back(std::move(verdict));
    status.devices.push_back(std::move(device));
  }
  return status;
}

ClusterStatus read(const std::string& text) {
  auto status = parse_status(text);
  REQUIRE(status);
  return *std::move(status);
}

}  // namespace

TEST_CASE("a status is read back as it was told") { CHECK(read(status_text(small())) == small()); }

TEST_CASE("a device stands with the verdicts about it, and what concerns all stands by itself") {
  const auto json = nlohmann::json::parse(status_text(small()));
  REQUIRE(json["verdicts"].size() == 1);
  CHECK(json["verdicts"][0]["reason"] == "BrakeEngaged");
  REQUIRE(json["devices"].size() == 1);
  CHECK(json["devices"][0]["verdicts"][0]["subject"]["name"] == "train-0");
  CHECK(json["devices"][0]["verdicts"][0]["nextStepAt"] == "2026-11-20T12:02:00Z");
}

TEST_CASE("first the histories go, then minor devices, then the ends of messages, then messages, then devices") {
  struct Case {
    ClusterStatus status;
    bool histories = false;
    std::size_t message_limit = 0;
    bool messages = false;
    bool minor_left = false;
    bool devices_left = false;
  };
  const std::array<Case, 5> cases = {{
      {.status = large(50, 50, 100)},
      {.status = large(120, 40, 100), .histories = true},
      {.status = large(120, 300, 100), .histories = true, .minor_left = true},
      {.status = large(100, 300, 400), .histories = true, .message_limit = 120, .minor_left = true},
      {.status = large(900, 50, 400), .histories = true, .messages = true, .minor_left = true, .devices_left = true},
  }};
  for (const auto& one : cases) {
    const auto text = status_text(one.status);
    CAPTURE(text.size());
    CHECK(text.size() <= kStatusLimit);
    const auto told = read(text);
    CHECK(told.cut.histories == one.histories);
    if (!one.messages) CHECK(told.cut.message_limit == one.message_limit);
    CHECK(told.cut.messages == one.messages);
    CHECK(told.devices.size() + told.cut.devices == one.status.devices.size());
    CHECK(told.verdicts.size() + told.cut.verdicts == one.status.verdicts.size());
    const auto shown_minor = std::ranges::count_if(told.devices, &StatusDevice::is_minor);
    const auto all_minor = std::ranges::count_if(one.status.devices, &StatusDevice::is_minor);
    CHECK((shown_minor < all_minor) == one.minor_left);
    const bool lacks = told.devices.size() - static_cast<std::size_t>(shown_minor) <
                       one.status.devices.size() - static_cast<std::size_t>(all_minor);
    CHECK(lacks == one.devices_left);
    // What concerns all is there whatever is cut, and the first devices are.
    CHECK(told.verdicts.front().reason == "BrakeEngaged");
    REQUIRE_FALSE(told.devices.empty());
    CHECK(told.devices.front().device == one.status.devices.front().device);
  }
}

TEST_CASE("no limit is exceeded by a byte, whatever the driver's words are") {
  auto status = large(40, 10, 0);
  for (auto& device : status.devices) device.said = std::string("\x01\"\xff\n") + std::string(300, '"');
  for (const std::size_t limit : {4096UL, 5000UL, 8191UL, 8192UL, 20000UL, 65536UL}) {
    CAPTURE(limit);
    const auto text = status_text(status, limit);
    CHECK(text.size() <= limit);
    CHECK(read(text).devices.size() + read(text).cut.devices == 50);
  }
}

TEST_CASE("a thousand policies leave room for devices, and those left out are counted") {
  auto status = small();
  for (int i = 0; i < 3000; ++i) status.policies.push_back({.name = fmt::format("policy-{}", i), .mode = "observe"});
  const auto told = read(status_text(status));
  CHECK(told.devices.size() == 1);
  CHECK(told.cut.policies > 0);
  CHECK(told.policies.size() + told.cut.policies == 3001);
}

TEST_CASE("what is no status, or of a format to come, is an error that says so") {
  CHECK(parse_status("").error().message == "the status is no JSON object");
  CHECK(parse_status("[]").error().message == "the status is no JSON object");
  CHECK(parse_status(R"({"format":2})").error().message ==
        "the status has format 2, and this program knows 1: run the controller's version");
  const auto odd =
      parse_status(R"({"format":1,"counts":{"devicesUnhealthy":-1},"devices":[7,{"device":3}],"leftOut":7})");
  REQUIRE(odd);
  CHECK(odd->devices_unhealthy == 0);
}
