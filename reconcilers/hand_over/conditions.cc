#include "reconcilers/hand_over/conditions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "domain/contract/names.h"
#include "domain/limits/write_keys.h"

namespace dhc::hand_over {

namespace {

std::string_view status_of(const HandOverCondition& condition, bool is_bad) {
  return condition.is_problem == is_bad ? "True" : "False";
}

const k8s::Condition* find_condition(const k8s::Node& node, const std::string& type) {
  const auto found = std::ranges::find(node.kept, type, &k8s::Condition::type);
  return found == node.kept.end() ? nullptr : &*found;
}

/// What whoever looks at the node reads; the same as long as the same devices are grounds for the same reasons.
std::string message_of(const Grounds& grounds) {
  constexpr std::size_t kMostNamed = 4;
  constexpr std::size_t kLongest = 1024;
  std::string text;
  for (std::size_t i = 0; i < std::min(grounds.size(), kMostNamed); ++i) {
    text += fmt::format("{}{}: {} (policy {})", i == 0 ? "" : "; ", to_string(grounds[i].record->key), grounds[i].why,
                        grounds[i].policy->name);
  }
  if (grounds.size() > kMostNamed) text += fmt::format("; and {} more", grounds.size() - kMostNamed);
  return printable_cut(text, kLongest);
}

class Conditions {
 public:
  Conditions(const PlanInput& input, Gates& gates, Speech& speech, Plan& planned)
      : input_(input), gates_(gates), speech_(speech), planned_(planned), cases_(find_cases(input)) {}

  void run() {
    TextSet names = input_.world.nodes_with_conditions();
    for (const auto& [name, cases] : cases_) names.insert(name);
    for (const auto& name : names) consider(*input_.world.node(name));
  }

 private:
  /// What is to become of one condition of a node.
  struct Change {
    std::string type;
    const k8s::Condition* known = nullptr;      ///< Null: it is not there.
    const Grounds* grounds = nullptr;           ///< Null: nothing asks for it any more.
    const DevicePolicy* policy = nullptr;       ///< Null: none names it any more.
    std::optional<k8s::Condition> wanted = {};  ///< None: it is to go.
    bool was = false;                           ///< It says already that the node is bad.
    std::optional<HoldReason> hold = {};        ///< Whatever becomes of earlier requests.

    [[nodiscard]] bool is_new() const { return known == nullptr ? wanted.has_value() : wanted != *known; }
    [[nodiscard]] std::optional<k8s::Condition> as_it_is() const {
      return known == nullptr ? std::nullopt : std::optional(*known);
    }
  };

  void consider(const k8s::Node& node) {
    std::map<std::string, const Grounds*> types;  // null: nothing asks for it any more
    for (const auto& condition : node.kept) types[condition.type] = nullptr;
    const auto cases = cases_.find(node.meta.name);
    if (cases != cases_.end()) {
      for (const auto& [type, grounds] : cases->second) types[type] = &grounds;
    }
    std::vector<Change> changes;
    for (const auto& [type, grounds] : types) {
      const auto* known = find_condition(node, type);
      changes.push_back(grounds != nullptr ? to_bad(node, known, *grounds) : to_well(*known));
    }
    ApplyNodeConditions apply{.node = node.meta.name,
                              .uid = node.meta.uid,
                              .seen_version = node.meta.resource_version,
                              .conditions = {},
                              .asks = asked_of(node, changes),
                              .hands_over = false,
                              .policy = {}};
    bool is_new = false;
    for (auto& change : changes) {
      const bool is_made = change.is_new() && (change.grounds != nullptr ? hand_over(node, change, apply)
                                                                         : take_back(node, change, apply));
      is_new = is_new || is_made;
      auto next = is_made ? std::move(change.wanted) : change.as_it_is();
      if (next) apply.conditions.push_back(*std::move(next));
    }
    if (!is_new) return;
    gates_.sends();
    if (apply.hands_over) gates_.begins(apply.node);
    planned_.actions.emplace_back(std::move(apply));
  }

  /// What one write would make of the node now. What is held for reasons of its own is none of it: were it, its first
  /// write would be taken for one that had come to nothing.
  std::string asked_of(const k8s::Node& node, const std::vector<Change>& changes) const {
    std::string asks = node.meta.uid;
    for (const auto& change : changes) {
      const bool begins = change.grounds != nullptr && !change.was;
      if (!change.is_new() || change.hold || (begins && full(node, change))) continue;
      asks += fmt::format("; {}", change.type);
      if (change.wanted) asks += fmt::format(" {} {}", change.wanted->status, change.wanted->message);
    }
    return asks;
  }

  Change to_bad(const k8s::Node& node, const k8s::Condition* known, const Grounds& grounds) {
    const auto* policy = grounds.front().policy;
    const auto& rules = *policy->hand_over->condition;
    k8s::Condition wanted{.type = rules.type,
                          .status = std::string(status_of(rules, true)),
                          .reason = std::string(kHandedOverReason),
                          .message = message_of(grounds),
                          .last_transition = {}};
    Change change{.type = rules.type, .known = known, .grounds = &grounds, .policy = policy};
    change.was = known != nullptr && is_handed_over(*known) && known->status == wanted.status;
    wanted.last_transition = change.was ? known->last_transition : std::chrono::floor<Seconds>(input_.now.wall);
    change.wanted = std::move(wanted);
    if (!change.is_new()) {
      say_standing(node, *known, grounds, {});
    } else if (change.was) {
      change.hold = gates_.not_changed(grounds);
    } else {
      change.hold = gates_.not_now(node, grounds,
                                   fmt::format("set condition {}={} of the node", change.type, change.wanted->status));
    }
    return change;
  }

  Change to_well(const k8s::Condition& known) const {
    const auto* policy = policy_with(input_.policy, known.type);
    Change change{.type = known.type, .known = &known, .policy = policy};
    if (policy != nullptr && !is_handed_over(known)) {
      change.wanted = known;
      return change;
    }
    if (policy != nullptr) {
      change.wanted = k8s::Condition{.type = known.type,
                                     .status = std::string(status_of(*policy->hand_over->condition, false)),
                                     .reason = std::string(kTakenBackReason),
                                     .message = "no device of the node is a ground for handing it over",
                                     .last_transition = std::chrono::floor<Seconds>(input_.now.wall)};
    }
    change.hold = gates_.not_ended(policy);
    return change;
  }

  /// Whether it is made now.
  bool hand_over(const k8s::Node& node, const Change& change, ApplyNodeConditions& apply) {
    const auto& grounds = *change.grounds;
    auto hold = change.hold;
    if (!hold) hold = held_back(node, apply);
    if (!hold && !change.was) hold = full(node, change);
    if (!hold) hold = gates_.too_fast();
    if (hold && change.was) {
      speech_.wake().note_after(input_.now.mono, hold->until);
      say_standing(node, *change.known, grounds, "; its message is older: " + hold->message);
      return false;
    }
    if (hold) {
      speech_.say_each(node.meta.name, grounds, *hold);
      return false;
    }
    apply.hands_over = apply.hands_over || !change.was;
    apply.policy = change.policy->name;
    for (const auto& ground : grounds) {
      speech_.say_each(node.meta.name, {ground},
                       {.reason = Reason::HandingOver,
                        .message = fmt::format("{}: condition {}={} of the node is being written", ground.why,
                                               change.type, change.wanted->status),
                        .until = {}});
    }
    return true;
  }

  /// Likewise, of a condition that nothing asks for.
  bool take_back(const k8s::Node& node, const Change& change, ApplyNodeConditions& apply) {
    const auto* policy = change.policy;
    const auto name = policy == nullptr ? std::string() : policy->name;
    auto hold = change.hold;
    if (!hold) hold = held_back(node, apply);
    if (!hold) hold = gates_.too_fast();
    // Of several of one node the first is told.
    if (told_.insert(node.meta.name).second)
      speech_.say(
          node.meta.name, {}, name, policy,
          {.reason = hold && hold->reason == Reason::WouldHandOver ? Reason::HandedOver : Reason::TakingBack,
           .message = (policy == nullptr
                           ? fmt::format("no policy names condition {} any more: it is removed", change.type)
                           : fmt::format("no device is a ground for condition {} any more: it says so", change.type)) +
                      (hold ? "; not yet: " + hold->message : std::string()),
           .until = hold ? hold->until : std::nullopt},
          change.known->last_transition.value_or(WallTime()));
    if (hold) return false;
    apply.policy = name;
    return true;
  }

  std::optional<HoldReason> held_back(const k8s::Node& node, const ApplyNodeConditions& apply) const {
    return gates_.held_back(hand_over_write_key(node.meta.name), node.meta.resource_version, apply.asks);
  }

  std::optional<HoldReason> full(const k8s::Node& node, const Change& change) const {
    return gates_.full(node, change.grounds->front().record->key);
  }

  void say_standing(const k8s::Node& node, const k8s::Condition& condition, const Grounds& grounds,
                    const std::string& more) {
    for (const auto& ground : grounds) {
      speech_.say_each(
          node.meta.name, {ground},
          {.reason = Reason::HandedOver,
           .message = fmt::format("{}: condition {}={} of the node stands until the incident ends or is acknowledged{}",
                                  ground.why, condition.type, condition.status, more),
           .until = {}});
    }
  }

  const PlanInput& input_;
  Gates& gates_;
  Speech& speech_;
  Plan& planned_;
  Cases cases_;
  std::set<std::string> told_;  // nodes of which it has said that something ends
};

}  // namespace

void plan_conditions(const PlanInput& input, Gates& gates, Speech& speech, Plan& planned) {
  Conditions(input, gates, speech, planned).run();
}

}  // namespace dhc::hand_over
