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
  void consider(const k8s::Node& node) {
    ApplyNodeConditions apply{.node = node.meta.name,
                              .uid = node.meta.uid,
                              .seen_version = node.meta.resource_version,
                              .conditions = {},
                              .asks = node.meta.uid,
                              .hands_over = false,
                              .policy = {}};
    std::map<std::string, const Grounds*> types;  // null: nothing asks for it any more
    for (const auto& condition : node.kept) types[condition.type] = nullptr;
    const auto cases = cases_.find(node.meta.name);
    if (cases != cases_.end()) {
      for (const auto& [type, grounds] : cases->second) types[type] = &grounds;
    }
    for (const auto& [type, grounds] : types) apply.asks += fmt::format("; {}: {}", type, asked_of(type, grounds));
    bool is_new = false;
    for (const auto& [type, grounds] : types) {
      const auto* known = find_condition(node, type);
      auto wanted = grounds != nullptr ? hand_over(node, known, *grounds, apply) : take_back(node, known, apply);
      is_new = is_new || (known == nullptr ? wanted.has_value() : wanted != *known);
      if (wanted) apply.conditions.push_back(*std::move(wanted));
    }
    if (!is_new) return;
    gates_.sends();
    if (apply.hands_over) gates_.begins(apply.node);
    planned_.actions.emplace_back(std::move(apply));
  }

  /// What it is to say in the end: of a node that is bad, or well, or nothing any more.
  std::string asked_of(const std::string& type, const Grounds* grounds) const {
    if (grounds == nullptr) return policy_with(input_.policy, type) == nullptr ? "gone" : "well";
    return fmt::format("{} {}", status_of(*grounds->front().policy->hand_over->condition, true), message_of(*grounds));
  }

  /// The condition as it is to be; none: there is none, and none is made now.
  std::optional<k8s::Condition> hand_over(const k8s::Node& node, const k8s::Condition* known, const Grounds& grounds,
                                          ApplyNodeConditions& apply) {
    const auto& rules = *grounds.front().policy->hand_over->condition;
    const auto as_it_is = known == nullptr ? std::nullopt : std::optional(*known);
    k8s::Condition wanted{.type = rules.type,
                          .status = std::string(status_of(rules, true)),
                          .reason = std::string(kHandedOverReason),
                          .message = message_of(grounds),
                          .last_transition = {}};
    const bool was = known != nullptr && is_handed_over(*known) && known->status == wanted.status;
    wanted.last_transition = was ? known->last_transition : std::chrono::floor<Seconds>(input_.now.wall);
    if (was && wanted == *known) {
      say_standing(node, wanted, grounds, {});
      return as_it_is;
    }
    const auto deed = fmt::format("set condition {}={} of the node", wanted.type, wanted.status);
    auto hold = was ? gates_.not_changed(grounds) : gates_.not_now(node, grounds, deed);
    if (!hold) hold = held_back(node, apply);
    if (!hold && !was) hold = gates_.full(node, grounds.front().record->key);
    if (!hold) hold = gates_.too_fast();
    if (hold && was) {
      speech_.wake().note_after(input_.now.mono, hold->until);
      say_standing(node, *known, grounds, "; its message is older: " + hold->message);
      return as_it_is;
    }
    if (hold) {
      speech_.say_each(node.meta.name, grounds, *hold);
      return as_it_is;
    }
    apply.hands_over = apply.hands_over || !was;
    apply.policy = grounds.front().policy->name;
    for (const auto& ground : grounds) {
      speech_.say_each(node.meta.name, {ground},
                       {.reason = Reason::HandingOver,
                        .message = fmt::format("{}: condition {}={} of the node is being written", ground.why,
                                               wanted.type, wanted.status),
                        .until = {}});
    }
    return wanted;
  }

  /// What becomes of a condition that nothing asks for.
  std::optional<k8s::Condition> take_back(const k8s::Node& node, const k8s::Condition* known,
                                          ApplyNodeConditions& apply) {
    const auto* policy = policy_with(input_.policy, known->type);
    if (policy != nullptr && !is_handed_over(*known)) return *known;
    const auto name = policy == nullptr ? std::string() : policy->name;
    auto hold = gates_.not_ended(policy);
    if (!hold) hold = held_back(node, apply);
    if (!hold) hold = gates_.too_fast();
    // Of several of one node the first is told.
    if (told_.insert(node.meta.name).second)
      speech_.say(
          node.meta.name, {}, name, policy,
          {.reason = hold && hold->reason == Reason::WouldHandOver ? Reason::HandedOver : Reason::TakingBack,
           .message = (policy == nullptr
                           ? fmt::format("no policy names condition {} any more: it is removed", known->type)
                           : fmt::format("no device is a ground for condition {} any more: it says so", known->type)) +
                      (hold ? "; not yet: " + hold->message : std::string()),
           .until = hold ? hold->until : std::nullopt},
          known->last_transition.value_or(WallTime()));
    if (hold) return *known;
    apply.policy = name;
    if (policy == nullptr) return std::nullopt;
    return k8s::Condition{.type = known->type,
                          .status = std::string(status_of(*policy->hand_over->condition, false)),
                          .reason = std::string(kTakenBackReason),
                          .message = "no device of the node is a ground for handing it over",
                          .last_transition = std::chrono::floor<Seconds>(input_.now.wall)};
  }

  std::optional<HoldReason> held_back(const k8s::Node& node, const ApplyNodeConditions& apply) const {
    return gates_.held_back(hand_over_write_key(node.meta.name), node.meta.resource_version, apply.asks);
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
