#include "domain/exposure.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "domain/match_device.h"

namespace dhc {

namespace {

/// Something that a policy may act on, with its time.
struct Signal {
  Moment since;
  bool unknown_now = false;
  bool by_claim = false;
  std::string said;
};

/// Whether the policy speaks of this device on this pod, whatever the device's state.
bool covers(const DevicePolicy& policy, const World& world, const k8s::Pod& pod, const DeviceKey& key) {
  return !selector_misfit(policy.match, world, pod, key);
}

/// What the device's state means for this holder: an incident is of those who have seen it themselves. A new pod on a
/// device whose incident is still open, repaired and acknowledged say, may hear Unknown first (seen on 1.37.1).
std::optional<Signal> health_signal(const Match& match, const DeviceState& state, const std::string& pod_uid,
                                    const Holding& holding) {
  const bool wants_unknown = wants(match, k8s::Health::Unknown);
  if (state.unhealthy_since && state.is_witness(pod_uid) && wants(match, k8s::Health::Unhealthy) &&
      message_fits(match, state.message)) {
    return Signal{
        .since = wants_unknown ? state.not_healthy_since.value_or(*state.unhealthy_since) : *state.unhealthy_since,
        .unknown_now = state.health == k8s::Health::Unknown && (!wants_unknown || state.forgotten),
        .said = state.message};
  }
  if (state.health == k8s::Health::Unknown && wants_unknown && !state.forgotten && state.unknown_since &&
      message_fits(match, {})) {
    const Moment since = std::max(*state.unknown_since, holding.seen_at.value_or(*state.unknown_since));
    return Signal{.since = since, .said = {}};
  }
  return std::nullopt;
}

/// The later of the condition's own time and our first sight of it; our condition on the pod remembers the first sight
/// of a process before this one.
Moment since_of(const k8s::Condition& condition, const World& world, const PodRecord& record, const Holding& holding,
                const Now& now) {
  const auto* sight = world.claim_condition(holding.claim, holding.key, condition.type);
  if (sight == nullptr) return moment_of(now);
  const auto* word = record.told.find(to_string(holding.key));
  const bool is_remembered = sight->from_the_start && word != nullptr && word->by_claim && word->since;
  if (!is_remembered || *word->since >= sight->since.wall) return sight->since;
  // A time ahead of our first sight says nothing about when it began, also once the clock has passed it.
  const auto told = condition.last_transition.value_or(*word->since);
  return moment_of(told > sight->since.wall ? *word->since : std::max(told, *word->since), now);
}

std::optional<Signal> condition_signal(const Match& match, const World& world, const PodRecord& record,
                                       const Holding& holding, const Now& now) {
  if (match.claim_conditions.empty() || holding.claim.empty() || holding.ambiguous) return std::nullopt;
  const auto* claim = world.claim(holding.claim);
  const auto* condition =
      claim == nullptr ? nullptr : find_claim_condition(match.claim_conditions, *claim, holding.key);
  if (condition == nullptr) return std::nullopt;
  std::string said = condition->type + "=" + condition->status;
  if (!condition->reason.empty()) said += " (" + condition->reason + ")";
  if (!condition->message.empty()) said += ": " + condition->message;
  return Signal{.since = since_of(*condition, world, record, holding, now), .by_claim = true, .said = said};
}

class Finder {
 public:
  Finder(const World& world, const Policy& policy, const Now& now) : world_(world), policy_(policy), now_(now) {}

  std::vector<Exposure> find() {
    for (const auto& key : world_.tracker().not_healthy()) {
      const auto* state = world_.tracker().find(key);
      for (const auto& uid : state->holders) add(key, *state, uid);
    }
    for (const auto& claim : world_.claims_with_conditions()) add_claim(claim);
    std::ranges::sort(found_, {}, [](const Exposure& e) { return std::tie(e.since, e.key, e.pod().meta.uid); });
    return std::move(found_);
  }

 private:
  void add_claim(const std::string& claim) {
    for (const auto& uid : world_.users_of(claim)) {
      const auto* record = world_.pod(uid);
      if (record == nullptr) continue;
      for (const auto& holding : record->holdings) {
        if (holding.claim != claim) continue;
        if (const auto* state = world_.tracker().find(holding.key)) add(holding.key, *state, uid);
      }
    }
  }

  /// Which interface it is, for people who look for the device on its node.
  void add_network(Signal& signal, const Holding& holding) const {
    const auto* claim = holding.claim.empty() ? nullptr : world_.claim(holding.claim);
    if (claim == nullptr) return;
    for (const auto& device : claim->devices) {
      if (device.network.empty() || DeviceKey::dra(device.driver, device.pool, device.device) != holding.key) continue;
      signal.said += (signal.said.empty() ? "" : "; ") + ("network: " + device.network);
    }
  }

  /// A policy speaks of an ambiguous device if it speaks of every one that it may be.
  bool covers_all(const DevicePolicy& policy, const k8s::Pod& pod, const Holding& holding) const {
    if (!holding.ambiguous) return covers(policy, world_, pod, holding.key);
    return std::ranges::all_of(holding.candidates,
                               [&](const DeviceKey& candidate) { return covers(policy, world_, pod, candidate); });
  }

  /// Nothing opens while the device is Unknown, and what was open before that stays open.
  static bool was_open(const DeviceState& state, MonoTime opens_at) {
    return !state.unknown_since || opens_at <= state.unknown_since->mono;
  }

  void add(const DeviceKey& key, const DeviceState& state, const std::string& uid) {
    const auto* record = world_.pod(uid);
    if (record == nullptr || !is_live(record->pod) || record->pod.node_name.empty()) return;
    const auto* holding = find_holding(record->holdings, key);
    if (holding == nullptr || !seen_.insert({key, uid}).second) return;
    for (const auto& policy : policy_.policies) {
      if (!covers_all(policy, record->pod, *holding)) continue;
      auto signal = health_signal(policy.match, state, uid, *holding);
      // The driver's own words are news also where the kubelet knows nothing just now.
      if (!signal || signal->unknown_now) {
        if (auto by_claim = condition_signal(policy.match, world_, *record, *holding, now_))
          signal = std::move(by_claim);
      }
      if (!signal) continue;
      add_network(*signal, *holding);
      const Mode mode = effective_mode(&policy, policy_);
      if (mode == Mode::Off) return;  // the first policy that matches wins, also when it says off
      const MonoTime opens_at = signal->since.mono + policy.after;
      found_.push_back({.key = key,
                        .record = record,
                        .holding = holding,
                        .policy = &policy,
                        .mode = mode,
                        .since = signal->since,
                        .opens_at = opens_at,
                        .open = now_.mono >= opens_at && (!signal->unknown_now || was_open(state, opens_at)),
                        .unknown_now = signal->unknown_now,
                        .forgotten = signal->unknown_now && state.forgotten,
                        .by_claim = signal->by_claim,
                        .said = std::move(signal->said)});
      return;
    }
  }

  const World& world_;
  const Policy& policy_;
  const Now& now_;
  std::set<std::pair<DeviceKey, std::string>> seen_;
  std::vector<Exposure> found_;
};

}  // namespace

const DevicePolicy* policy_for(const World& world, const Policy& policy, const k8s::Pod& pod, const DeviceKey& key) {
  const auto found = std::ranges::find_if(
      policy.policies, [&](const DevicePolicy& candidate) { return covers(candidate, world, pod, key); });
  return found == policy.policies.end() ? nullptr : &*found;
}

const DevicePolicy* policy_for_unhealthy(const World& world, const Policy& policy, const k8s::Pod& pod,
                                         const DeviceKey& key, std::string_view said) {
  const auto found = std::ranges::find_if(policy.policies, [&](const DevicePolicy& candidate) {
    return covers(candidate, world, pod, key) && !unhealthy_misfit(candidate.match, said);
  });
  return found == policy.policies.end() ? nullptr : &*found;
}

std::vector<const DevicePolicy*> policies_for(const World& world, const Policy& policy, const k8s::Pod& pod,
                                              const DeviceKey& key) {
  std::vector<const DevicePolicy*> found;
  for (const auto& candidate : policy.policies) {
    if (covers(candidate, world, pod, key)) found.push_back(&candidate);
  }
  return found;
}

bool enforced(const World& world, const Policy& policy, const k8s::Pod& pod, const DeviceKey& key) {
  return std::ranges::any_of(policy.policies, [&](const DevicePolicy& candidate) {
    return candidate.mode == Mode::Enforce && covers(candidate, world, pod, key);
  });
}

const k8s::Condition* find_claim_condition(const std::vector<ClaimConditionMatch>& wanted,
                                           const k8s::ResourceClaim& claim, const DeviceKey& key) {
  const auto same = [&](const auto& entry) {
    return entry.driver == key.scope && entry.pool == key.place && entry.device == key.device;
  };
  const auto result = std::ranges::find_if(claim.results, same);
  const auto device = std::ranges::find_if(claim.devices, same);
  if (result == claim.results.end() || device == claim.devices.end()) return nullptr;
  for (const auto& match : wanted) {
    if (std::ranges::find(result->binding_conditions, match.type) != result->binding_conditions.end()) continue;
    for (const auto& condition : device->conditions) {
      if (condition.type == match.type && condition.status == match.status) return &condition;
    }
  }
  return nullptr;
}

std::vector<Exposure> find_exposures(const World& world, const Policy& policy, const Now& now) {
  return Finder(world, policy, now).find();
}

}  // namespace dhc
