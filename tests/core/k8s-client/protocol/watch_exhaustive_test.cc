// Every state of a watch times every input, and every pair of inputs, and longer sequences at random: what must always
// hold, holds.
#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/protocol/api_error.h"
#include "tests/support/core/watch_driver.h"

using namespace dhc;
using namespace dhc::k8s;
using dhc::test::WatchDriver;

namespace {

struct Input {
  std::string name;
  std::function<void(WatchDriver&)> apply;
};

std::vector<Input> all_inputs() {
  std::vector<Input> inputs;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::Malformed); ++kind) {
    if (static_cast<ErrorKind>(kind) == ErrorKind::Cancelled) continue;
    inputs.push_back({std::string(to_string(static_cast<ErrorKind>(kind))),
                      [kind](WatchDriver& watch) { watch.fail(static_cast<ErrorKind>(kind)); }});
  }
  for (const int code : {0, 401, 403, 404, 410, 422, 429, 500, 504}) {
    inputs.push_back({fmt::format("ERROR {}", code), [code](WatchDriver& watch) {
                        if (!watch.error(code)) watch.close();
                      }});
  }
  const auto add = [&](std::string name, std::function<void(WatchDriver&)> apply) {
    inputs.push_back({std::move(name), std::move(apply)});
  };
  const auto told = [](WatchDriver& watch, bool go_on) {
    if (!go_on && watch.machine.status().state != WatchState::Stopped) watch.close();
  };
  add("close", [](WatchDriver& watch) { watch.close(); });
  add("429 with a long Retry-After",
      [](WatchDriver& watch) { watch.fail(ErrorKind::TooManyRequests, std::chrono::hours(1)); });
  add("added", [told](WatchDriver& watch) { told(watch, watch.added("a", "201")); });
  add("added at 0", [told](WatchDriver& watch) { told(watch, watch.added("a", "0")); });
  add("deleted", [told](WatchDriver& watch) { told(watch, watch.deleted("a", "202")); });
  add("bookmark", [told](WatchDriver& watch) { told(watch, watch.bookmark("203")); });
  add("end marker", [told](WatchDriver& watch) { told(watch, watch.bookmark("204", true)); });
  add("end marker without a version", [told](WatchDriver& watch) { told(watch, watch.bookmark("", true)); });
  add("bad line", [told](WatchDriver& watch) { told(watch, watch.bad("", "")); });
  add("bad object", [told](WatchDriver& watch) { told(watch, watch.bad("x", "uid-x")); });
  add("page", [](WatchDriver& watch) { watch.page({"a"}, "205", "more"); });
  add("last page", [](WatchDriver& watch) { watch.page({"b"}, "205"); });
  add("last page at 0", [](WatchDriver& watch) { watch.page({"b"}, "0"); });
  add("ten minutes", [](WatchDriver& watch) { watch.pass(std::chrono::minutes(10)); });
  return inputs;
}

struct State {
  std::string name;
  std::function<void(WatchDriver&)> reach;
};

std::vector<State> all_states() {
  return {
      {"first WatchList", [](WatchDriver& watch) { watch.request(); }},
      {"first page",
       [](WatchDriver& watch) {
         watch.request();
         watch.fail(ErrorKind::Invalid);
         watch.request();
       }},
      {"second page",
       [](WatchDriver& watch) {
         watch.request();
         watch.fail(ErrorKind::Invalid);
         watch.request();
         watch.page({"a"}, "90", "next");
         watch.request();
       }},
      {"watching after WatchList", [](WatchDriver& watch) { watch.sync(); }},
      {"watching after pages",
       [](WatchDriver& watch) {
         watch.sync_by_pages();
         watch.request();
       }},
      {"checking",
       [](WatchDriver& watch) {
         watch.sync();
         watch.close();
         watch.server_version.clear();  // the check is not answered by itself
         watch.request();
         watch.server_version = "1000000";
       }},
      {"WatchList again",
       [](WatchDriver& watch) {
         watch.sync();
         watch.fail(ErrorKind::Gone);
         watch.request();
       }},
      {"pages again",
       [](WatchDriver& watch) {
         watch.sync_by_pages();
         watch.request();
         watch.fail(ErrorKind::Gone);
         watch.request();
       }},
      {"not served",
       [](WatchDriver& watch) {
         for (int i = 0; i < 3; ++i) {
           watch.request();
           watch.fail(ErrorKind::NotFound);
         }
         watch.request();
       }},
  };
}

/// What every request and every delivery must obey; the first rule that does not hold, or nothing. Plain comparisons:
/// this runs millions of times.
const char* broken_rule(WatchDriver& watch, bool& synced) {
  for (const auto& delivery : watch.out) {
    synced = synced || std::holds_alternative<Snapshot>(delivery);
    if (!synced) return "delivered before a snapshot";
  }
  watch.out.clear();
  const auto before = watch.waited;
  const auto target = watch.request();
  if (target.empty()) return "no next step";
  if (watch.waited - before > std::chrono::minutes(6)) return "waits too long";
  if (target.find("resourceVersion=0") != std::string::npos) return "asks from version 0";
  if (target.find("resourceVersion=&") != std::string::npos) return "asks from no version";
  const bool watches = target.find("watch=true") != std::string::npos;
  const bool initial = target.find("sendInitialEvents") != std::string::npos;
  const bool versioned = target.find("&resourceVersion=") != std::string::npos;
  return initial || watches == versioned ? nullptr : "a watch without a version, or a list with one";
}

const char* broken_rule(const State& state, const std::vector<const Input*>& inputs) {
  WatchDriver watch(Kind::DeviceTaintRule, 0.0);
  state.reach(watch);
  bool synced = false;
  if (const auto* const rule = broken_rule(watch, synced)) return rule;
  for (const auto* const input : inputs) {
    const auto relists = watch.machine.status().relists;
    const auto went_back = watch.machine.status().went_back;
    input->apply(watch);
    const auto time = watch.now.mono;
    if (const auto* const rule = broken_rule(watch, synced)) return rule;
    // 404 tries the next version at once: that is no relist of what is served.
    const bool other_version = input->name == "NotFound" || input->name == "ERROR 404";
    // The first time that a server goes back it is listed at once, the next a minute later.
    const bool relisted = watch.machine.status().relists != relists && watch.machine.status().went_back == went_back;
    if (relisted && !other_version && watch.now.mono == time) return "a list without back-off";
  }
  return nullptr;
}

}  // namespace

TEST_CASE("in every state, every two inputs leave a next step, a bounded wait and no version 0") {
  const auto inputs = all_inputs();
  for (const auto& state : all_states()) {
    for (const auto& a : inputs) {
      for (const auto& b : inputs) {
        const auto* const rule = broken_rule(state, {&a, &b});
        if (rule != nullptr) FAIL(rule << ": " << state.name << " > " << a.name << " > " << b.name);
      }
    }
  }
  CHECK(inputs.size() == 40);
}

TEST_CASE("in every state, five inputs drawn at random leave the same") {
  const auto inputs = all_inputs();
  std::minstd_rand draw(20261120);
  const auto any = [&] { return &inputs[draw() % inputs.size()]; };
  for (const auto& state : all_states()) {
    for (int round = 0; round < 1000; ++round) {
      const std::vector<const Input*> chosen = {any(), any(), any(), any(), any()};
      const auto* const rule = broken_rule(state, chosen);
      std::string trace = state.name;
      for (const auto* const input : chosen) trace += " > " + input->name;
      if (rule != nullptr) FAIL(rule << ": " << trace);
    }
  }
  CHECK(all_states().size() == 9);
}

TEST_CASE("in every state, one input for ever keeps the rate of requests bounded") {
  for (const auto& state : all_states()) {
    for (const auto& input : all_inputs()) {
      WatchDriver watch(Kind::DeviceTaintRule, 0.5);
      state.reach(watch);
      const auto start = watch.now.mono;
      int requests = 0;
      for (int i = 0; i < 500; ++i) {
        const auto endings = watch.machine.status().endings;
        input.apply(watch);
        if (watch.machine.status().endings != endings) ++requests;
        if (watch.request().empty()) FAIL("no next step");
      }
      const auto seconds = std::chrono::duration<double>(watch.now.mono - start).count();
      CAPTURE(state.name);
      CAPTURE(input.name);
      // Half of 30 s on average; the first steps are shorter.
      CHECK(requests <= 12 + seconds / 5);
    }
  }
}

TEST_CASE("in every state, every refusal with every Retry-After is waited for as long as it asks and is allowed") {
  struct Wish {
    std::vector<Header> headers;
    Millis least;
  };
  const std::vector<Wish> wishes = {
      {{}, Millis(0)},
      {{{"retry-after", "0"}}, Millis(0)},
      {{{"retry-after", "7"}}, Seconds(7)},
      {{{"retry-after", "99999999999999999999"}}, std::chrono::minutes(5)},
      {{{"retry-after", "-5"}}, Millis(0)},
      {{{"retry-after", "soon"}}, Millis(0)},
      {{{"retry-after", "Sun, 06 Nov 1994 08:49:57 GMT"}, {"date", "Sun, 06 Nov 1994 08:49:37 GMT"}}, Seconds(20)}};
  for (const auto& state : all_states()) {
    for (const unsigned code : {401U, 403U, 409U, 410U, 429U, 500U, 502U, 503U, 504U}) {
      for (const auto& wish : wishes) {
        WatchDriver watch(Kind::DeviceTaintRule, 0.0);
        state.reach(watch);
        const auto before = watch.waited;
        watch.machine.ended(error_from_response({.status = code, .headers = wish.headers, .body = {}}), watch.now,
                            watch.chance, watch.out);
        CAPTURE(state.name);
        CAPTURE(code);
        CHECK_FALSE(watch.request().empty());
        CHECK(watch.waited - before > wish.least);
        CHECK(watch.waited - before <= wish.least + Seconds(60));
      }
    }
  }
}

TEST_CASE("in every state, a stop is the last step") {
  for (const auto& state : all_states()) {
    for (const auto& input : all_inputs()) {
      WatchDriver watch(Kind::DeviceTaintRule);
      state.reach(watch);
      input.apply(watch);
      watch.fail(ErrorKind::Cancelled);
      CAPTURE(state.name);
      CAPTURE(input.name);
      CHECK(watch.request().empty());
    }
  }
}
