#include "domain/findings/affected_pod.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "domain/findings/enforcement.h"
#include "domain/findings/match_device.h"
#include "domain/findings/rollouts.h"

namespace dhc {

namespace {

/// Something that a policy may act on, with its time.
struct Signal {
  Moment since;
  bool unknown_now = false;
  std::optional<MonoTime> unknown_from = {};  ///< Since when, if that is known.
  bool forgotten = false;                     ///< As of AffectedPod.
  SignalSource source = SignalSource::Report;
  k8s::Taint taint = {};
  std::string said;
};

/// Whether the policy speaks of this device on this pod, whatever the device's state.
bool covers(const DevicePolicy& policy, const World& world, const k8s::Pod& pod, const DeviceKey& key) {
  return !selector_misfit(policy.match, world, pod, key);
}

std::string text_of_word(const OtherWord& word) {
  return word.message.empty() ? word.word.str() : word.word + ": " + word.message;
}

/// A word of the kubelet that is none of the three, and is named by the policy.
std::optional<Signal> word_signal(const Match& match, const DeviceState& state, const OtherWord* word,
                                  const std::string& pod_uid) {
  if (word == nullptr || std::ranges::find(match.health_words, word->word) == match.health_words.end()) {
    return std::nullopt;
  }
  if (!std::ranges::binary_search(word->witnesses, pod_uid) || !message_fits(match, word->message)) return std::nullopt;
  Signal signal{.since = word->since, .unknown_now = word->silent_since.has_value(), .said = text_of_word(*word)};
  if (word->silent_since) signal.unknown_from = word->silent_since->mono;
  // What was Unhealthy before is bad without a break.
  if (state.unhealthy_since && state.is_witness(pod_uid) && wants(match, k8s::Health::Unhealthy)) {
    signal.since = std::min(signal.since, *state.unhealthy_since);
  }
  return signal;
}

/// What the device's state means for this holder: an incident is of those who have seen it themselves. A new pod on a
/// device whose incident is still open, repaired and acknowledged say, may hear Unknown first (seen on 1.37.1).
std::optional<Signal> state_signal(const Match& match, const DeviceState& state, const std::string& pod_uid,
                                   const HeldDevice& held_device) {
  const bool wants_unknown = wants(match, k8s::Health::Unknown);
  if (state.unhealthy_since && state.is_witness(pod_uid) && wants(match, k8s::Health::Unhealthy) &&
      message_fits(match, state.message)) {
    Signal signal{
        .since = wants_unknown ? state.not_healthy_since.value_or(*state.unhealthy_since) : *state.unhealthy_since,
        .unknown_now = state.health == k8s::Health::Unknown && (!wants_unknown || state.forgotten),
        .said = state.message};
    if (state.unknown_since) signal.unknown_from = state.unknown_since->mono;
    return signal;
  }
  if (state.health == k8s::Health::Unknown && wants_unknown && !state.forgotten && state.unknown_since &&
      message_fits(match, {})) {
    const Moment since = std::max(*state.unknown_since, held_device.seen_at.value_or(*state.unknown_since));
    return Signal{.since = since, .said = {}};
  }
  return std::nullopt;
}

std::optional<Signal> health_signal(const Match& match, const World& world, const DeviceState& state,
                                    const std::string& pod_uid, const HeldDevice& held_device) {
  auto by_word = word_signal(match, state, world.tracker().other_word_of(held_device.key), pod_uid);
  if (by_word && !by_word->unknown_now) return by_word;
  auto by_state = state_signal(match, state, pod_uid, held_device);
  return by_state ? by_state : by_word;
}

/// When a driver's own signal began, as far as we saw it.
struct Beginning {
  Moment since;
  bool from_the_start = false;    ///< It may be older than we are.
  std::optional<WallTime> given;  ///< By its own account.
};

/// The later of the signal's own time and our first sight of it; our condition on the pod remembers the first sight of
/// a process before this one.
Moment since_of(const Beginning& began, SignalSource source, const PodRecord& record, const DeviceKey& key,
                const Now& now) {
  const auto* word = record.word_of(to_string(key));
  const bool is_remembered = began.from_the_start && word != nullptr && word->source == source && word->since;
  if (!is_remembered || *word->since >= began.since.wall) return began.since;
  // A time ahead of our first sight says nothing about when it began, also once the clock has passed it.
  const auto given = began.given.value_or(*word->since);
  return moment_of(given > began.since.wall ? *word->since : std::max(given, *word->since), now);
}

std::optional<Signal> condition_signal(const Match& match, const World& world, const PodRecord& record,
                                       const HeldDevice& held_device, const Now& now) {
  if (match.claim_conditions.empty() || held_device.claim.empty() || held_device.ambiguous) return std::nullopt;
  const auto* claim = world.claim(held_device.claim);
  const auto* condition =
      claim == nullptr ? nullptr : find_claim_condition(match.claim_conditions, *claim, held_device.key);
  if (condition == nullptr) return std::nullopt;
  std::string said = condition->type + "=" + condition->status;
  if (!condition->reason.empty()) said += " (" + condition->reason + ")";
  if (!condition->message.empty()) said += ": " + condition->message;
  Beginning began{.since = moment_of(now), .given = condition->last_transition};
  if (const auto* sight = world.claim_condition(held_device.claim, held_device.key, condition->type)) {
    began.since = sight->since;
    began.from_the_start = sight->from_the_start;
  }
  return Signal{.since = since_of(began, SignalSource::Claim, record, held_device.key, now),
                .source = SignalSource::Claim,
                .said = std::move(said)};
}

/// Whether the pod held the device then, as far as we or our condition on it know.
bool held_until(const PodRecord& record, const HeldDevice& held_device, WallTime then) {
  const bool was_told = (record.told && record.told->cut) || record.word_of(to_string(held_device.key)) != nullptr;
  return was_told || (held_device.seen_at && held_device.seen_at->wall <= then);
}

bool names_key(const Match& match, std::string_view taint_key) {
  return std::ranges::any_of(match.device_taints,
                             [&](const DeviceTaintMatch& one) { return glob_matches(one.key, taint_key); });
}

/// Whatever its value.
bool names_all_of_key(const Match& match, std::string_view taint_key) {
  return std::ranges::any_of(match.device_taints, [&](const DeviceTaintMatch& one) {
    return one.value == "*" && one.effect.empty() && glob_matches(one.key, taint_key);
  });
}

/// Of a pod that held the device under a taint that its driver shows no more, and has not taken back.
std::optional<Signal> kept_taint_signal(const Match& match, const KeptTaint* kept, const PodRecord& record,
                                        const HeldDevice& held_device, const Now& now) {
  if (kept == nullptr || !names_key(match, kept->taint.key)) return std::nullopt;
  if (!held_until(record, held_device, kept->last_word)) return std::nullopt;
  return Signal{.since = moment_of(kept->since, now),
                .unknown_now = true,
                .forgotten = kept->forgotten,
                .source = SignalSource::Taint,
                .taint = kept->taint,
                .said = kept->said};
}

/// What another taint was written over is only of whoever held the device under it.
bool held_under(const TaintWord& word, const PodRecord& record, const HeldDevice& held_device, const Now& now) {
  const auto age = now.mono - word.unknown_from.value_or(now.mono);
  return held_until(record, held_device, now.wall - age);
}

/// **Source:** KEP-5055: a driver may taint its own devices; NVIDIA's says nothing else of a dead one.
std::optional<Signal> taint_signal(const Match& match, const World& world, const PodRecord& record,
                                   const HeldDevice& held_device, const KeptTaint* kept, const Now& now) {
  if (match.device_taints.empty() || held_device.ambiguous) return std::nullopt;
  // A node may publish slices of its own alone: one that speaks of another's pool is not believed.
  const auto home = world.inventory().node_of(held_device.key);
  const bool is_home = home.empty() || home == record.pod.node_name;
  auto word = is_home ? taint_word(match, world, held_device.key, now, kept) : std::nullopt;
  if (!word) return kept_taint_signal(match, kept, record, held_device, now);
  if (word->overwritten && !held_under(*word, record, held_device, now)) return std::nullopt;
  const Beginning began{.since = word->since, .from_the_start = word->from_the_start, .given = word->added};
  const bool goes_on = kept != nullptr && word->from_the_start && kept->since < word->since.wall;
  // Counted back from our first sight of it: what the wall clock does later changes nothing.
  const Now sight{.mono = word->since.mono, .wall = word->since.wall};
  return Signal{.since = goes_on ? moment_of(kept->since, sight)
                                 : since_of(began, SignalSource::Taint, record, held_device.key, now),
                .unknown_now = word->unknown_from.has_value(),
                .unknown_from = word->unknown_from,
                .forgotten = word->unknown_from && kept != nullptr && kept->forgotten,
                .source = SignalSource::Taint,
                .taint = std::move(word->taint),
                .said = std::move(word->said)};
}

/// Of two signals the first that stands now speaks. What a second one says beside it is no new fault: the device has
/// been bad since the older of the two.
std::optional<Signal> joined(std::optional<Signal> first, std::optional<Signal> second) {
  if (!first || !second) return first ? std::move(first) : std::move(second);
  if (first->unknown_now) return second->unknown_now ? std::move(first) : std::move(second);
  if (!second->unknown_now) first->since = std::min(first->since, second->since);
  return first;
}

auto in_order(const AffectedPod& affected) { return std::tie(affected.since, affected.key, affected.pod().meta.uid); }

class Finder {
 public:
  Finder(const World& world, const Policy& policy, const Now& now) : world_(world), policy_(policy), now_(now) {}

  std::vector<AffectedPod> find() {
    for (const auto& key : world_.tracker().not_healthy()) {
      const auto* state = world_.tracker().find(key);
      for (const auto& uid : state->holders) add(key, *state, uid);
    }
    if (std::ranges::any_of(policy_.policies, names_conditions)) {
      for (const auto& claim : world_.claims_with_conditions()) add_claim(claim);
    }
    if (std::ranges::any_of(policy_.policies, names_taints)) {
      add_tainted(world_.driver_taints().devices());
      add_tainted(world_.tainted_incidents());
    }
    return sorted();
  }

  /// Of these devices alone.
  std::vector<AffectedPod> find(const std::set<DeviceKey>& keys) {
    for (const auto& key : keys) {
      const auto* state = world_.tracker().find(key);
      if (state == nullptr) continue;
      for (const auto& uid : state->holders) add(key, *state, uid);
    }
    return sorted();
  }

 private:
  std::vector<AffectedPod> sorted() {
    std::ranges::sort(found_, {}, in_order);
    return std::move(found_);
  }

  void add_claim(const std::string& claim) {
    for (const auto& uid : world_.users_of(claim)) {
      const auto* record = world_.pod(uid);
      if (record == nullptr) continue;
      for (const auto& held_device : record->held_devices) {
        if (held_device.claim != claim) continue;
        if (const auto* state = world_.tracker().find(held_device.key)) add(held_device.key, *state, uid);
      }
    }
  }

  static bool names_conditions(const DevicePolicy& policy) { return !policy.match.claim_conditions.empty(); }
  static bool names_taints(const DevicePolicy& policy) { return !policy.match.device_taints.empty(); }

  void add_tainted(const std::vector<DeviceKey>& keys) {
    for (const auto& key : keys) {
      const auto* state = world_.tracker().find(key);
      if (state == nullptr) continue;
      for (const auto& uid : state->holders) add(key, *state, uid);
    }
  }

  /// Which interface it is, for people who look for the device on its node.
  void add_network(Signal& signal, const HeldDevice& held_device) const {
    const auto* claim = held_device.claim.empty() ? nullptr : world_.claim(held_device.claim);
    if (claim == nullptr) return;
    for (const auto& device : claim->devices) {
      if (device.network.empty() || DeviceKey::dra(device.driver, device.pool, device.device) != held_device.key)
        continue;
      signal.said += (signal.said.empty() ? "" : "; ") + ("network: " + device.network);
    }
  }

  /// A policy speaks of an ambiguous device if it speaks of every one that it may be.
  bool covers_all(const DevicePolicy& policy, const k8s::Pod& pod, const HeldDevice& held_device) const {
    if (!held_device.ambiguous) return covers(policy, world_, pod, held_device.key);
    return std::ranges::all_of(held_device.candidates,
                               [&](const DeviceKey& candidate) { return covers(policy, world_, pod, candidate); });
  }

  /// Nothing opens while the device is Unknown, and what was open before that stays open.
  static bool was_open(const Signal& signal, MonoTime opens_at) {
    return !signal.unknown_from || opens_at <= *signal.unknown_from;
  }

  /// The driver's own words are news also where the kubelet knows nothing just now.
  std::optional<Signal> signal_for(const Match& match, const DeviceState& state, const PodRecord& record,
                                   const HeldDevice& held_device, const KeptTaint* kept) const {
    auto signal = health_signal(match, world_, state, record.pod.meta.uid, held_device);
    signal = joined(std::move(signal), condition_signal(match, world_, record, held_device, now_));
    return joined(std::move(signal), taint_signal(match, world_, record, held_device, kept, now_));
  }

  /// Whether the taint is one that this policy names. Where only its key is known, the policy in whose incident it is
  /// kept says so, if it still names it, and whoever names every taint of that key.
  bool keeps(const DevicePolicy& policy, const KeptTaint& kept, const k8s::Pod& pod,
             const HeldDevice& held_device) const {
    const auto& match = policy.match;
    if (!kept.taint.effect.empty()) {
      return fits_any(match.device_taints, kept.taint);
    }
    if (names_all_of_key(match, kept.taint.key)) return true;
    const auto keeper = std::ranges::find(policy_.policies, kept.policy, &DevicePolicy::name);
    const bool is_kept_elsewhere = keeper != policy_.policies.end() && names_key(keeper->match, kept.taint.key) &&
                                   covers_all(*keeper, pod, held_device);
    return !is_kept_elsewhere || &*keeper == &policy;
  }

  static bool is_forgotten_report(const Signal& signal, const DeviceState& state) {
    return signal.source == SignalSource::Report && state.forgotten;
  }

  void add(const DeviceKey& key, const DeviceState& state, const std::string& uid) {
    const auto* record = world_.pod(uid);
    const auto* held_device = find_live_hold(record, key);
    if (held_device == nullptr || !seen_.insert({key, uid}).second) return;
    const auto kept = world_.kept_taint(key);
    for (const auto& policy : policy_.policies) {
      if (!covers_all(policy, record->pod, *held_device)) continue;
      const bool is_kept = kept && keeps(policy, *kept, record->pod, *held_device);
      auto signal = signal_for(policy.match, state, *record, *held_device, is_kept ? &*kept : nullptr);
      if (!signal) continue;
      add_network(*signal, *held_device);
      Mode mode = effective_mode(&policy, policy_);
      if (mode == Mode::Off) return;  // the first policy that matches wins, also when it says off
      if (mode == Mode::Enforce && enforce_miss(policy, world_, record->pod, *held_device)) mode = Mode::Observe;
      MonoTime opens_at = signal->since.mono + policy.after;
      std::optional<MonoTime> rolls_until;
      std::uint64_t cause = 0;
      const auto rollout = world_.rollout_of(key);
      if (const auto wait = rollout_wait(rollout, signal->since.wall, policy.after)) {
        rolls_until = opens_at + *wait;
        opens_at = std::max(opens_at, *rolls_until);
        if (!held_device->ambiguous) cause = rollout_cause(rollout, key.scope, signal->said, signal->since.wall);
      }
      found_.push_back({.key = key,
                        .record = record,
                        .held_device = held_device,
                        .policy = &policy,
                        .mode = mode,
                        .since = signal->since,
                        .opens_at = opens_at,
                        .rolls_until = rolls_until,
                        .rollout_cause = cause,
                        .open = now_.mono >= opens_at && (!signal->unknown_now || was_open(*signal, opens_at)),
                        .unknown_now = signal->unknown_now,
                        .forgotten = signal->unknown_now && (signal->forgotten || is_forgotten_report(*signal, state)),
                        .source = signal->source,
                        .taint = std::move(signal->taint),
                        .said = std::move(signal->said)});
      return;
    }
  }

  const World& world_;
  const Policy& policy_;
  const Now& now_;
  std::set<std::pair<DeviceKey, std::string>> seen_;
  std::vector<AffectedPod> found_;
};

}  // namespace

std::optional<Millis> rollout_wait(const std::optional<Rollout>& rollout, WallTime since, Millis after) {
  const auto opens = since + after;
  if (!rollout || opens <= rollout->began || since >= rollout->until) return std::nullopt;
  return std::chrono::ceil<Millis>(std::min<WallTime::duration>(rollout->until - opens, kRolloutHold));
}

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

std::vector<AffectedPod> find_affected_pods(const World& world, const Policy& policy, const Now& now) {
  return Finder(world, policy, now).find();
}

const HeldDevice* find_live_hold(const PodRecord* record, const DeviceKey& key) {
  if (record == nullptr || !is_live(record->pod) || record->pod.node_name.empty()) return nullptr;
  return find_held_device(record->held_devices, key);
}

std::optional<TaintWord> standing_taint(const World& world, const DeviceKey& key, const Now& now) {
  if (!world.driver_taints().is_tainted(key)) return std::nullopt;  // of nearly all
  auto word = world.driver_taints().word_for(key, {{.key = "*", .effect = {}}}, now.mono);
  return word && !word->unknown_from ? std::move(word) : std::nullopt;
}

void AffectedPods::look_for_unmatched(const World& world, const Focus& focus, const std::vector<AffectedPod>& found,
                                      const Now& now) {
  std::set<std::pair<DeviceKey, std::string_view>> matched;
  for (const auto& affected : found) matched.emplace(affected.key, affected.pod().meta.uid);
  const auto look = [&](const DeviceKey& key) {
    const auto* state = world.tracker().find(key);
    const bool is_tainted = standing_taint(world, key, now).has_value();
    const bool is_unmatched = state != nullptr && std::ranges::any_of(state->holders, [&](std::string_view uid) {
                                const auto* hold = find_live_hold(world.pod(uid), key);
                                if (hold == nullptr || matched.contains({key, uid})) return false;
                                return state->is_witness(uid) || (is_tainted && !hold->ambiguous);
                              });
    is_unmatched ? (void)unmatched_.insert(key) : (void)unmatched_.erase(key);
  };
  if (focus.all) {
    unmatched_.clear();
    std::ranges::for_each(world.tracker().not_healthy(), look);
    std::ranges::for_each(world.driver_taints().devices(), look);
  } else {
    std::ranges::for_each(focus.devices, look);
  }
}

void AffectedPods::update(const World& world, const Policy& policy, const Focus& focus, const Now& now) {
  if (focus.all) {
    all_ = find_affected_pods(world, policy, now);
    look_for_unmatched(world, focus, all_, now);
    return;
  }
  // What their pods and devices were may be gone by now: nothing of them is looked at.
  std::erase_if(all_, [&](const AffectedPod& affected) { return focus.devices.contains(affected.key); });
  auto found = Finder(world, policy, now).find(focus.devices);
  look_for_unmatched(world, focus, found, now);
  if (found.empty()) return;
  // Not inplace_merge: libstdc++ 12's is deprecated to clang.
  std::vector<AffectedPod> merged;
  merged.reserve(all_.size() + found.size());
  std::ranges::merge(std::move_iterator(all_.begin()), std::move_iterator(all_.end()),
                     std::move_iterator(found.begin()), std::move_iterator(found.end()), std::back_inserter(merged), {},
                     in_order, in_order);
  all_ = std::move(merged);
}

std::vector<const AffectedPod*> AffectedPods::in(const Focus& focus) const {
  std::vector<const AffectedPod*> found;
  for (const auto& affected : all_) {
    if (focus.has(affected.key)) found.push_back(&affected);
  }
  return found;
}

}  // namespace dhc
