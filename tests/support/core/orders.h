#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/now.h"
#include "tests/support/core/scenario.h"

namespace dhc::test {

/// Something that befalls a world of a story, and by name what must have happened before.
template <class World>
struct Event {
  std::string name;
  std::function<void(World&)> befall;
  std::vector<std::string> after = {};
};

/// A story whose end must not depend on the order of its events, nor on when the controller's process restarts.
template <class World>
struct Story {
  std::function<std::unique_ptr<World>()> begin;
  std::vector<Event<World>> events;
  Millis between;  ///< From one event to the next.
  Millis rest;     ///< From the last one to the end.
};

/// An event without what it does.
struct EventName {
  std::string name;
  std::vector<std::string> after = {};
};

/// Every order in which each event comes after those that it names, as indices, always in the same sequence. The test
/// fails if there is none: an event names itself, a later one of itself, or one that is not there.
[[nodiscard]] std::vector<std::vector<std::size_t>> allowed_orders(const std::vector<EventName>& events);

/// What stands when a story is over, sorted, a sentence each: evictions, rules, our node taints, Jobs' limits and
/// credits, conditions of ours and the reasons of all verdicts. Of names that a server makes up the made-up part is
/// left out.
[[nodiscard]] std::vector<std::string> end_of(const Scenario& world);

/// One of the ways in which a story is told, as `break, restart, recover`: the order, and after how many of its events
/// the controller restarts; 0: it does not.
[[nodiscard]] std::string way_of(const std::vector<EventName>& events, const std::vector<std::size_t>& order,
                                 std::size_t restarts_after);

/// Fails, naming the way, if the story ended otherwise.
void expect_end(const std::string& way, const std::vector<std::string>& end, const std::vector<std::string>& expected);

/// Tells the story in every allowed order, each one without a restart of the controller and with one after each event,
/// and expects the same end of all.
template <class World>
void expect_one_end(const Story<World>& story, const std::vector<std::string>& expected) {
  std::vector<EventName> names;
  for (const auto& event : story.events) names.push_back({event.name, event.after});
  for (const auto& order : allowed_orders(names)) {
    for (std::size_t restarts_after = 0; restarts_after <= order.size(); ++restarts_after) {
      const auto world = story.begin();
      for (std::size_t told = 0; told < order.size(); ++told) {
        story.events[order[told]].befall(*world);
        world->run_for(story.between / 2);
        if (told + 1 == restarts_after) world->restart_controller();
        world->run_for(story.between / 2);
      }
      world->run_for(story.rest);
      expect_end(way_of(names, order, restarts_after), end_of(*world), expected);
    }
  }
}

}  // namespace dhc::test
