#include "app/losses/losses.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "app/losses/loss_causes.h"

namespace dhc {

namespace {

/// Of the devices that the pod holds, the one that has been bad for the longest.
std::optional<WallTime> pod_bad_since(const PodRecord& record, const World& world, const IncidentStore& incidents) {
  std::optional<WallTime> first;
  for (const auto& held_device : record.held_devices) {
    const auto since = bad_since(held_device.key, world, incidents);
    if (since) first = std::min(first.value_or(*since), *since);
  }
  return first;
}

/// Of the devices of a driver or resource on the node with an open incident, likewise.
std::optional<WallTime> node_bad_since(const std::string& node, const std::string& scope, const World& world,
                                       const IncidentStore& incidents) {
  std::optional<WallTime> first;
  for (const auto& [key, record] : incidents.records()) {
    const auto* facts = record.incident.facts();
    if (facts == nullptr || key.scope != scope || node_of(record, world) != node) continue;
    first = std::min(first.value_or(facts->since), facts->since);
  }
  return first;
}

bool shows_our_condition(const k8s::Pod& pod) {
  const auto* condition = our_condition(pod);
  return condition != nullptr && condition->status == "True";
}

}  // namespace

void Losses::turn_over(const Now& now) {
  seconds_.advance(now.mono);
  seconds_.clear();
  predictions_.clear();
  forecasts_.clear();
  evictions_.clear();
  notices_.clear();
  just_evicted_.clear();
  times_.turn_over();
  is_first_ = true;
}

void Losses::look(const World& world, const IncidentStore& incidents, const std::set<DeviceKey>& opened,
                  const Focus& focus, const std::map<DeviceKey, std::vector<Verdict>>& decided,
                  const hand_over::Plan& handed, const Now& now) {
  look_at_devices(world, incidents, focus);
  look_at_nodes(world, incidents, opened, now);
  look_for_replacements(world, focus, now);
  const auto is_bad = [&](const DeviceKey& key) { return is_bad_still(key, world, incidents); };
  for (const auto& [key, verdicts] : decided) {
    for (const auto& verdict : verdicts) {
      if (const auto deed = deed_of(verdict.reason); deed && is_bad(key))
        forecasts_.foretell(*deed, key, verdict.policy, verdict.subject.uid, !is_first_);
      const bool is_foretold = verdict.reason == Reason::WouldEvict && !verdict.subject.uid.empty() && is_bad(key);
      if (is_foretold) predictions_.foretell(verdict.subject.uid, verdict.policy, key, !is_first_);
    }
  }
  for (const auto& [key, policy] : handed.would) {
    if (is_bad(key)) forecasts_.foretell(Deed::HandOver, key, policy, {}, !is_first_);
  }
  predictions_.look(world, focus, is_bad);
  forecasts_.look(focus, is_bad);
  is_first_ = false;
}

void Losses::look_at_devices(const World& world, const IncidentStore& incidents, const Focus& focus) {
  const auto cause_of = [&](const DeviceKey& key) { return loss_of(key, world, incidents); };
  if (!focus.all) {
    for (const auto& key : focus.devices) seconds_.set(key, cause_of(key));
    return;
  }
  std::set<DeviceKey> keys = world.tracker().not_healthy();
  for (const auto& [key, record] : incidents.records()) keys.insert(key);
  seconds_.look_at_all(std::move(keys), cause_of);
}

void Losses::look_at_nodes(const World& world, const IncidentStore& incidents, const std::set<DeviceKey>& opened,
                           const Now& now) {
  if (is_first_) {
    for (const auto& [key, record] : incidents.records()) {
      if (!key.is_device()) continue;
      const auto node = node_of(record, world);
      for (const auto& past : record.past.incidents) {
        if (!node.empty() && past.at < now.wall) times_.recall(node, past.at);
      }
    }
  }
  std::set<std::string> nodes;
  for (const auto& key : opened) {
    const auto* record = incidents.find(key);
    if (record != nullptr && key.is_device()) nodes.insert(node_of(*record, world));
  }
  nodes.erase(std::string());
  for (const auto& node : nodes) times_.opened(node, now);
}

void Losses::look_for_replacements(const World& world, const Focus& focus, const Now& now) {
  if (focus.all) times_.forget(now);
  const auto look_at = [&](const std::string& uid) {
    const auto* record = world.pod(uid);
    if (record == nullptr || record->pod.phase != k8s::PodPhase::Running || !record->pod.meta.creation) return;
    times_.runs(uid, record->pod.meta.controller_identity(), world.ours(*record->pod.meta.creation), now);
  };
  // Where an answer came late the replacement runs already.
  auto owners = std::exchange(just_evicted_, {});
  if (!times_.is_waiting()) return;
  if (focus.all) {
    owners = times_.waiting();
  } else {
    for (const auto& uid : focus.pods) look_at(uid);
  }
  for (const auto& owner : owners) {
    for (const auto* uids : world.pods_owned_by(owner)) std::ranges::for_each(*uids, look_at);
  }
}

void Losses::sent(const Action& action, const World& world, const IncidentStore& incidents, const Now& now) {
  if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    const auto* record = world.pod(evict->uid);
    const auto since = bad_since(evict->key, world, incidents);
    if (record == nullptr || !since) return;
    evictions_.insert_or_assign(
        evict->uid, Sent{.owner = record->pod.meta.controller_identity(), .bad_since = *since, .at = now.wall});
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    const auto* record = world.pod(condition->uid);
    const bool is_first =
        record != nullptr && condition->wanted && condition->wanted->status && !shows_our_condition(record->pod);
    const auto since = is_first ? pod_bad_since(*record, world, incidents) : std::nullopt;
    if (since) notices_.insert_or_assign(condition->uid, *since);
  }
}

void Losses::answered(const Outcome& outcome, const World& world, const IncidentStore& incidents, const Now& now) {
  const bool is_done = outcome.status.has_value();
  if (const auto* evict = std::get_if<eviction::EvictPod>(&outcome.action)) {
    const auto sent = evictions_.extract(evict->uid);
    if (!is_done) return;
    predictions_.evicted(evict->uid);
    if (sent.empty()) return;
    const auto& [owner, since, at] = sent.mapped();
    times_.evicted(evict->uid, owner, since, at, now);
    if (!owner.empty()) just_evicted_.insert(owner);
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&outcome.action)) {
    const auto sent = notices_.extract(condition->uid);
    if (is_done && !sent.empty()) times_.measure(Span::ToNotice, sent.mapped(), now);
  } else if (!is_done) {
    return;
  } else if (const auto* rule = std::get_if<taint::ApplyRule>(&outcome.action)) {
    if (rule->uid.empty() && rule->same_card_as.empty()) times_.measure(Span::ToTaint, rule->since, now);
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&outcome.action)) {
    const auto since = patch->add ? node_bad_since(patch->node, patch->device, world, incidents) : std::nullopt;
    if (since) times_.measure(Span::ToTaint, *since, now);
  } else if (const auto* job = std::get_if<job_retry::PatchJob>(&outcome.action)) {
    retries_credited_ += std::max<std::int64_t>(0, job->limit - job->limit_before);
  }
}

LossFigures Losses::figures() const {
  return {.lost = seconds_.lost(),
          .lost_now = seconds_.devices(),
          .measured = times_.counts(),
          .retries_credited = retries_credited_,
          .would_evict = predictions_.foretold(),
          .would_do = forecasts_.counts(),
          .ends = predictions_.ends()};
}

}  // namespace dhc
