#include "reconcilers/hand_over/gates.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/wake.h"
#include "domain/cluster/node_departure.h"
#include "domain/contract/names.h"
#include "domain/findings/enforcement.h"
#include "domain/findings/pauses.h"
#include "domain/incidents/handed_objects.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/hand_over/plan.h"

namespace dhc::hand_over {

namespace {

bool stands(const k8s::Node& node) { return std::ranges::any_of(node.kept, is_handed_over); }

/// Whether the device is Unknown just now, and nothing else says that it is bad.
bool is_unknown(const PlanInput& input, const DeviceRecord& record) {
  return is_called_unknown(input.world, record) && std::ranges::none_of(input.affected_pods, [&](const auto& affected) {
           return calls_bad(affected, record.key);
         });
}

/// One that was surely refused stands nowhere; one that was not asked for yet is about to.
bool may_stand(const RequestTracker& requests, const std::string& slot, const HandedObject& object) {
  if (object.phase != HandedObject::Phase::Noted) return object.phase == HandedObject::Phase::Made;
  const auto* attempt = requests.write(handed_object_key(slot));
  return object.is_doubted || attempt == nullptr || attempt->state != Attempt::State::Failed;
}

}  // namespace

bool is_handed_over(const k8s::Condition& condition) { return condition.reason == kHandedOverReason; }

Gates::Gates(const PlanInput& input) : input_(input), tokens_(input.requests.hand_over_tokens()) {
  if (input.handed == nullptr) return;
  for (const auto& [slot, object] : input.handed->all()) {
    // Also one that was refused: allowed later, all that are noted are made.
    if (object.phase != HandedObject::Phase::Over) with_object_.insert(object.node);
    if (may_stand(input.requests, slot, object)) standing_.insert(object.node);
  }
}

std::optional<HoldReason> Gates::not_now(const k8s::Node& node, const Grounds& grounds, std::string_view deed) const {
  std::optional<HoldReason> first;
  for (const auto& ground : grounds) {
    auto hold = not_now(node, ground, deed);
    if (!hold) return std::nullopt;
    if (!first || first->reason == Reason::WouldHandOver) first = std::move(hold);
  }
  return first;
}

std::optional<HoldReason> Gates::not_now(const k8s::Node& node, const Ground& ground, std::string_view deed) const {
  const auto& key = ground.record->key;
  if (mode_on(ground.policy, input_.policy, input_.world, key) != Mode::Enforce) {
    const bool is_elsewhere = effective_mode(ground.policy, input_.policy) == Mode::Enforce;
    return HoldReason{.reason = Reason::WouldHandOver,
                      .message = fmt::format("{}: {} would {}", ground.why,
                                             is_elsewhere ? "where enforceOn holds, it" : "an enforcing policy", deed),
                      .until = {}};
  }
  if (auto pause = pause_on(input_.world, input_.policy, input_.now.wall, key)) {
    const auto until = end_of(*pause, input_.now);
    return held(std::move(pause->why), until);
  }
  if (auto hold = held_by_brake(input_, key, node.meta.name, ", no node is handed over"))
    return held(std::move(hold->message), hold->until);
  if (auto hold = held_by_view(input_, key, views_of_taint(key))) return held(std::move(hold->message), hold->until);
  if (const auto why = why_leaving(node)) return held(fmt::format("the node is being removed: {}", *why), {});
  if (is_unknown(input_, *ground.record)) return held("the device is Unknown just now", {});
  return std::nullopt;
}

std::optional<HoldReason> Gates::not_changed(const Grounds& grounds) const {
  const bool may = std::ranges::any_of(
      grounds, [&](const Ground& ground) { return effective_mode(ground.policy, input_.policy) == Mode::Enforce; });
  return may ? std::nullopt : std::optional(held("nothing is written in observe mode", {}));
}

std::optional<HoldReason> Gates::not_ended(const DevicePolicy* policy) const {
  if (effective_mode(policy, input_.policy) != Mode::Enforce)
    return HoldReason{
        .reason = Reason::WouldHandOver, .message = "nothing is written in observe mode, it stands", .until = {}};
  auto hold = held_by_view(input_, {}, {k8s::Kind::Node, k8s::Kind::ConfigMap});
  return hold ? std::optional(held(std::move(hold->message), hold->until)) : std::nullopt;
}

std::optional<HoldReason> Gates::held_back(const std::string& key, const std::string& seen_version,
                                           std::string_view asks) const {
  auto hold = held_by_write(input_, key, seen_version, Reason::HandingOver, asks);
  if (!hold || hold->reason == Reason::HandingOver) return hold;
  return held(fmt::format("{} ({})", hold->message, to_string(hold->reason)), hold->until);
}

std::optional<HoldReason> Gates::full(const k8s::Node& node, const DeviceKey& key) const {
  if (counts(node.meta.name) || to_be_seen_by(node.meta.name)) return std::nullopt;
  const auto& cap = input_.policy.limits.cap_nodes_handed_over;
  const auto& [there, out, begun, frees_at] = scope_of(key);
  const auto known = static_cast<std::int64_t>(there.size());
  if (out + 1 <= allowed_by(cap, known)) return std::nullopt;
  return held(
      fmt::format(
          "{} of {} nodes with devices of {} are handed over or are to be, and caps.nodesHandedOver allows {}% and "
          "at least {}: repair those, or raise it",
          out, known, key.scope, cap.percent, cap.at_least),
      frees_at);
}

const Gates::Scope& Gates::scope_of(const DeviceKey& key) const {
  const auto [found, is_new] = scopes_.try_emplace({key.source, key.scope});
  auto& scope = found->second;
  if (is_new) scope.nodes = nodes_with(input_.world, key);
  if (is_new || scope.begun != begun_.size()) {
    scope.begun = begun_.size();
    Wake frees;
    scope.out = 0;
    for (const auto& name : scope.nodes) {
      const bool is_out = counts(name);
      const auto seen_by = is_out ? std::nullopt : to_be_seen_by(name);
      if (is_out || seen_by) ++scope.out;
      frees.note(seen_by);
    }
    scope.frees_at = frees.at();
  }
  return scope;
}

/// Its kubelet writes to the node all the time: a newer version of it does not say that ours did not come to be.
std::optional<MonoTime> Gates::to_be_seen_by(const std::string& name) const {
  const auto* attempt = input_.requests.write(hand_over_write_key(name));
  if (attempt == nullptr || !attempt->begins || !dhc::may_stand(*attempt)) return std::nullopt;
  const auto until = attempt->at + kUnseen;
  return until > input_.now.mono ? std::optional(until) : std::nullopt;
}

bool Gates::counts(const std::string& name) const {
  if (with_object_.contains(name) || begun_.contains(name)) return true;
  const auto* node = input_.world.node(name);
  if (node == nullptr) return false;
  if (stands(*node)) return true;
  const auto key = hand_over_write_key(name);
  const auto* attempt = input_.requests.write(key);
  return attempt != nullptr && dhc::may_stand(*attempt) &&
         !input_.requests.may_write(key, node->meta.resource_version, input_.now);
}

std::optional<HoldReason> Gates::too_fast() const {
  if (tokens_.available(input_.now.mono) > 0) return std::nullopt;
  return held(fmt::format("{} nodes a minute are handed over or taken back, and they are used up", kWritesPerMinute),
              tokens_.ready_at(1, input_.now.mono));
}

std::size_t Gates::handed_over() const {
  std::set<std::string> nodes = standing_;
  for (const auto& name : input_.world.nodes_with_conditions()) {
    if (stands(*input_.world.node(name))) nodes.insert(name);
  }
  return nodes.size();
}

HoldReason Gates::held(std::string why, std::optional<MonoTime> until) {
  return {.reason = Reason::HandOverHeld, .message = std::move(why), .until = until};
}

}  // namespace dhc::hand_over
