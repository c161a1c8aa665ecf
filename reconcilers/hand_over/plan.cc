#include "reconcilers/hand_over/plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/wake.h"
#include "domain/cluster/node_departure.h"
#include "domain/cluster/node_subject.h"
#include "domain/contract/names.h"
#include "domain/findings/enforcement.h"
#include "domain/findings/pauses.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/hand_over/cases.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::hand_over {

namespace {

using Grounds = std::vector<Ground>;

std::string_view status_of(const HandOverCondition& condition, bool is_bad) {
  return condition.is_problem == is_bad ? "True" : "False";
}

bool is_handed_over(const k8s::Condition& condition) { return condition.reason == kHandedOverReason; }

bool stands(const k8s::Node& node) { return std::ranges::any_of(node.kept, is_handed_over); }

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

/// Whether the device is Unknown just now, and nothing else says that it is bad.
bool is_unknown(const PlanInput& input, const DeviceRecord& record) {
  return is_called_unknown(input.world, record) && std::ranges::none_of(input.affected_pods, [&](const auto& affected) {
           return calls_bad(affected, record.key);
         });
}

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input), left_(input.requests.hand_over_tokens().available(input.now.mono)), cases_(find_cases(input)) {}

  Plan run() {
    std::set<std::string> names = input_.world.nodes_with_conditions();
    for (const auto& [name, cases] : cases_) names.insert(name);
    for (const auto& name : names) {
      const auto& node = *input_.world.node(name);
      if (stands(node)) ++planned_.handed_over;
      consider(node);
    }
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  void consider(const k8s::Node& node) {
    ApplyNodeConditions apply{.node = node.meta.name,
                              .uid = node.meta.uid,
                              .seen_version = node.meta.resource_version,
                              .conditions = {},
                              .hands_over = false,
                              .policy = {}};
    std::set<std::string> types;
    for (const auto& condition : node.kept) types.insert(condition.type);
    const auto cases = cases_.find(node.meta.name);
    if (cases != cases_.end()) {
      for (const auto& [type, grounds] : cases->second) types.insert(type);
    }
    bool is_new = false;
    for (const auto& type : types) {
      const auto* known = find_condition(node, type);
      const bool is_wanted = cases != cases_.end() && cases->second.contains(type);
      auto wanted = is_wanted ? hand_over(node, known, cases->second.at(type), apply) : take_back(node, known, apply);
      is_new = is_new || (known == nullptr ? wanted.has_value() : wanted != *known);
      if (wanted) apply.conditions.push_back(*std::move(wanted));
    }
    if (!is_new) return;
    --left_;
    if (apply.hands_over) begun_.insert(apply.node);
    planned_.actions.push_back(std::move(apply));
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
    auto hold = was ? not_changed(grounds) : not_now(node, grounds);
    if (!hold) hold = held_back(node);
    if (!hold && !was) hold = full(node, grounds.front().record->key);
    if (!hold) hold = too_fast();
    if (hold && was) {
      wake_.note_after(input_.now.mono, hold->until);
      say_standing(node, *known, grounds, "; its message is older: " + hold->message);
      return as_it_is;
    }
    if (hold) {
      for (const auto& ground : grounds) say(node, ground, *hold);
      return as_it_is;
    }
    apply.hands_over = apply.hands_over || !was;
    apply.policy = grounds.front().policy->name;
    for (const auto& ground : grounds) {
      say(node, ground,
          {.reason = Reason::HandingOver,
           .message =
               fmt::format("{}: condition {}={} of the node is being written", ground.why, wanted.type, wanted.status),
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
    auto hold = not_ended(policy);
    if (!hold) hold = held_back(node);
    if (!hold) hold = too_fast();
    // Of several of one node the first is told.
    if (told_.insert(node.meta.name).second)
      say(node, {}, name, policy,
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

  /// Why the node is not newly handed over now. One device that may be a ground is enough.
  std::optional<HoldReason> not_now(const k8s::Node& node, const Grounds& grounds) const {
    std::optional<HoldReason> first;
    for (const auto& ground : grounds) {
      auto hold = not_now(node, ground);
      if (!hold) return std::nullopt;
      if (!first || first->reason == Reason::WouldHandOver) first = std::move(hold);
    }
    return first;
  }

  std::optional<HoldReason> not_now(const k8s::Node& node, const Ground& ground) const {
    const auto& key = ground.record->key;
    if (mode_on(ground.policy, input_.policy, input_.world, key) != Mode::Enforce) {
      const auto& rules = *ground.policy->hand_over->condition;
      const bool is_elsewhere = effective_mode(ground.policy, input_.policy) == Mode::Enforce;
      return HoldReason{.reason = Reason::WouldHandOver,
                        .message = fmt::format("{}: {} would set condition {}={} of the node", ground.why,
                                               is_elsewhere ? "where enforceOn holds, it" : "an enforcing policy",
                                               rules.type, status_of(rules, true)),
                        .until = {}};
    }
    if (auto pause = pause_on(input_.world, input_.policy, input_.now.wall, key)) {
      const auto until = end_of(*pause, input_.now);
      return held(std::move(pause->why), until);
    }
    if (auto hold = held_by_view(input_, views_of_taint(key))) return held(std::move(hold->message), hold->until);
    if (auto hold = held_by_brake(input_, key, node.meta.name, ", no node is handed over"))
      return held(std::move(hold->message), hold->until);
    if (const auto why = why_leaving(node)) return held(fmt::format("the node is being removed: {}", *why), {});
    if (is_unknown(input_, *ground.record)) return held("the device is Unknown just now", {});
    return std::nullopt;
  }

  /// A condition that stands says which devices are grounds now.
  std::optional<HoldReason> not_changed(const Grounds& grounds) const {
    const bool may = std::ranges::any_of(
        grounds, [&](const Ground& ground) { return effective_mode(ground.policy, input_.policy) == Mode::Enforce; });
    return may ? std::nullopt : std::optional(held("nothing is written in observe mode", {}));
  }

  std::optional<HoldReason> not_ended(const DevicePolicy* policy) const {
    if (effective_mode(policy, input_.policy) != Mode::Enforce)
      return HoldReason{
          .reason = Reason::WouldHandOver, .message = "nothing is written in observe mode, it stands", .until = {}};
    auto hold = held_by_view(input_, {k8s::Kind::Node, k8s::Kind::ConfigMap});
    return hold ? std::optional(held(std::move(hold->message), hold->until)) : std::nullopt;
  }

  std::optional<HoldReason> held_back(const k8s::Node& node) const {
    auto hold =
        held_by_write(input_, hand_over_write_key(node.meta.name), node.meta.resource_version, Reason::HandingOver);
    if (!hold || hold->reason == Reason::HandingOver) return hold;
    return held(fmt::format("{} ({})", hold->message, to_string(hold->reason)), hold->until);
  }

  /// The cap, counted in nodes that have devices of the same driver or resource.
  std::optional<HoldReason> full(const k8s::Node& node, const DeviceKey& key) {
    if (stands(node)) return std::nullopt;
    const auto& cap = input_.policy.limits.cap_nodes_handed_over;
    const auto there = nodes_with(input_.world, key);
    std::int64_t out = 0;
    for (const auto& name : there) {
      if (name != node.meta.name && counts(name)) ++out;
    }
    const auto known = static_cast<std::int64_t>(there.size());
    if (out + 1 <= allowed_by(cap, known)) return std::nullopt;
    return held(
        fmt::format("{} of {} nodes with devices of {} are handed over, and caps.nodesHandedOver allows {}% and "
                    "at least {}: repair those, or raise it",
                    out, known, key.scope, cap.percent, cap.at_least),
        {});
  }

  bool counts(const std::string& name) const {
    const auto* node = input_.world.node(name);
    if (node == nullptr) return false;
    if (stands(*node) || begun_.contains(name)) return true;
    const auto key = hand_over_write_key(name);
    const auto* attempt = input_.requests.write(key);
    return attempt != nullptr && may_stand(*attempt) &&
           !input_.requests.may_write(key, node->meta.resource_version, input_.now);
  }

  std::optional<HoldReason> too_fast() const {
    if (left_ > 0) return std::nullopt;
    return held(fmt::format("{} nodes a minute are handed over or taken back, and they are used up", kWritesPerMinute),
                input_.requests.hand_over_tokens().ready_at(1, input_.now.mono));
  }

  static HoldReason held(std::string why, std::optional<MonoTime> until) {
    return {.reason = Reason::HandOverHeld, .message = std::move(why), .until = until};
  }

  void say_standing(const k8s::Node& node, const k8s::Condition& condition, const Grounds& grounds,
                    const std::string& more) {
    for (const auto& ground : grounds) {
      say(node, ground,
          {.reason = Reason::HandedOver,
           .message = fmt::format("{}: condition {}={} of the node stands until the incident ends or is acknowledged{}",
                                  ground.why, condition.type, condition.status, more),
           .until = {}});
    }
  }

  void say(const k8s::Node& node, const Ground& ground, HoldReason hold) {
    wake_.note_after(input_.now.mono, ground.until);
    if (hold.reason == Reason::WouldHandOver) planned_.would.emplace_back(ground.record->key, ground.policy->name);
    say(node, to_string(ground.record->key), ground.policy->name, ground.policy, std::move(hold),
        ground.record->incident.facts()->since);
  }

  void say(const k8s::Node& node, std::string device, std::string name, const DevicePolicy* policy, HoldReason hold,
           WallTime since) {
    wake_.note_after(input_.now.mono, hold.until);
    planned_.verdicts.push_back(verdict_of({.subject = subject_of_node(input_.world, node.meta.name),
                                            .device = std::move(device),
                                            .policy = std::move(name),
                                            .mode = to_string(effective_mode(policy, input_.policy)),
                                            .since = since},
                                           std::move(hold), input_.now));
  }

  const PlanInput& input_;
  std::int64_t left_;
  Cases cases_;
  std::set<std::string> begun_;  // nodes that this plan hands over
  std::set<std::string> told_;   // nodes of which it has said that something ends
  Wake wake_;
  Plan planned_;
};

}  // namespace

Plan plan(const PlanInput& input) { return Planner(input).run(); }

}  // namespace dhc::hand_over
