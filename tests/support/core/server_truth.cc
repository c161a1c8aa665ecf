#include "tests/support/core/server_truth.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "simulator/api/field.h"
#include "simulator/controllers/state.h"

namespace dhc::test {

namespace {
using sim::Json;
using sim::list;
using sim::Res;
using sim::text;
using std::chrono::hours;
using std::chrono::minutes;

/// How long after a change everything that follows from it at once may take.
constexpr Millis kPatience = Seconds(35);
constexpr Millis kBrakeSettle = Seconds(30);
// Beyond its grace, counted from a deletionTimestamp in whole seconds.
constexpr Millis kHangs = minutes(2) - Seconds(1);

bool has_condition(const Json& device, const std::vector<ClaimConditionMatch>& wanted) {
  return std::ranges::any_of(list(device, {"conditions"}), [&](const Json& condition) {
    return std::ranges::any_of(wanted, [&](const ClaimConditionMatch& match) {
      return text(condition, {"type"}) == match.type && text(condition, {"status"}) == match.status;
    });
  });
}

/// Whether a policy has no selector but of devices, so that it means every pod's.
bool means_all_pods(const Policy& policy) {
  if (policy.policies.size() != 1) return false;
  const auto& rules = policy.policies.front();
  return rules.mode != Mode::Off && rules.match.namespaces.requirements.empty() &&
         rules.match.pods.requirements.empty() && rules.match.nodes.requirements.empty() && !rules.match.message;
}

}  // namespace

void ServerTruth::say(std::string_view invariant, const eviction::EvictPod& eviction, std::string text) {
  broken_.push_back(
      fmt::format("{}: eviction of {}/{} from {}: {}", invariant, eviction.ns, eviction.name, eviction.device, text));
}

void ServerTruth::restarted() {
  calm_since_.reset();
  is_stale_ = false;
  if (policy_.own_namespace.empty()) {
    brakes_.clear();
    lost_.clear();
  }
}

void ServerTruth::etcd_restored() {
  is_stale_ = true;
  // What the controller has written went back too: a later process does not know of these.
  evicted_.clear();
  lost_.clear();
  // Since when a device is bad went back as well, and a brake that had been released may be found again.
  may_judge_brakes_ = false;
}

void ServerTruth::clock_set(Millis by) {
  for (auto& [place, since] : exceeded_) since -= by;
  for (auto& [place, engaged] : brakes_) engaged.moves_from -= by;
  for (auto& one : evicted_) one.holds_until -= by;
}

bool ServerTruth::is_meant(const Device& device, const std::string& health) const {
  const auto means = [&](const DevicePolicy& rules) {
    const auto& match = rules.match;
    const auto fits = [&](const std::string& glob) { return glob_matches(glob, device.scope); };
    const bool is_any = match.resources.empty() && match.drivers.empty();
    if (!is_any && std::ranges::none_of(match.resources, fits) && std::ranges::none_of(match.drivers, fits)) {
      return false;
    }
    return std::ranges::find(match.health_words, health) != match.health_words.end() ||
           std::ranges::any_of(match.health, [&](k8s::Health named) { return k8s::to_string(named) == health; });
  };
  return std::ranges::any_of(policy_.policies, means);
}

void ServerTruth::read_pods(const Now& now) {
  const auto& store = cluster_.store();
  auto tainted = named_taints(cluster_, policy_);
  const bool is_known = tainted == tainted_;
  if (is_known && seen_rv_ == store.rv() && server_ == store.server()) return;
  tainted_ = std::move(tainted);
  if (!is_known || server_ != store.server() || store.oldest_rv(Res::Pods) > seen_rv_) {
    std::set<std::string> there;
    for (const auto& [name, pod] : store.all(Res::Pods)) {
      there.insert(sim::uid_of(*pod));
      read_pod(*pod, now);
    }
    std::erase_if(pods_, [&](const auto& entry) { return !there.contains(entry.first); });
    std::erase_if(sick_, [&](const auto& uid) { return !there.contains(uid); });
  } else {
    const auto& changes = store.changes(Res::Pods);
    const auto first = std::ranges::upper_bound(changes, seen_rv_, {}, &sim::Change::rv);
    for (auto change = first; change != changes.end(); ++change) {
      if (change->type == sim::ChangeType::Deleted) {
        pods_.erase(sim::uid_of(*change->object));
        sick_.erase(sim::uid_of(*change->object));
      } else {
        read_pod(*change->object, now);
      }
    }
  }
  seen_rv_ = store.rv();
  server_ = store.server();
}

/// Who drives the devices of `claim:NAME[/REQUEST]`, by the claim's allocation.
std::string ServerTruth::driver_of(const Json& pod, std::string_view entry) const {
  const auto named = entry.substr(std::string_view("claim:").size());
  const auto name = named.substr(0, named.find('/'));
  for (const auto& use : list(pod, {"spec", "resourceClaims"})) {
    if (text(use, {"name"}) != name) continue;
    const auto claim = cluster_.get(Res::Claims, sim::ns_of(pod), sim::claim_name_of(pod, use));
    if (claim == nullptr) continue;
    for (const auto& result : list(*claim, {"status", "allocation", "devices", "results"})) {
      return text(result, {"driver"});
    }
  }
  return {};
}

void ServerTruth::read_pod(const Json& object, const Now& now) {
  auto& pod = pods_[sim::uid_of(object)];
  const auto* controller = sim::controller_of(object);
  pod.name = sim::ns_of(object) + "/" + sim::name_of(object);
  pod.node = text(object, {"spec", "nodeName"});
  pod.owner = controller != nullptr ? text(*controller, {"uid"}) : pod.name;
  if (pod.number == 0) pod.number = ++numbers_;
  pod.grace = sim::number(object, {"spec", "terminationGracePeriodSeconds"}, 30);
  pod.is_live = text(object, {"status", "phase"}) == "Running" && !sim::is_deleting(object);
  std::map<Device, MonoTime> bad;
  for (const auto& container : list(object, {"status", "containerStatuses"})) {
    for (const auto& entry : list(container, {"allocatedResourcesStatus"})) {
      const auto name = text(entry, {"name"});
      const auto scope = name.starts_with("claim:") ? driver_of(object, name) : name;
      for (const auto& one : list(entry, {"resources"})) {
        const auto id = text(one, {"resourceID"});
        // Of `vendor/class=CLAIM-DEVICE` what a driver's slice says too.
        Device device{scope, pod.node, name.starts_with("claim:") ? id.substr(id.find('=') + 1) : id};
        if (!is_meant(device, text(one, {"health"}))) continue;
        const auto before = pod.bad.find(device);
        bad.emplace(std::move(device), before == pod.bad.end() ? now.mono : before->second);
      }
    }
  }
  const auto before = std::exchange(pod.bad, std::move(bad));
  add_tainted(object, pod, before, now);
  if (pod.bad.empty()) {
    sick_.erase(sim::uid_of(object));
  } else {
    sick_.insert(sim::uid_of(object));
  }
}

void ServerTruth::add_tainted(const Json& object, Pod& pod, const std::map<Device, MonoTime>& before,
                              const Now& now) const {
  if (tainted_.empty()) return;
  for (const auto& use : list(object, {"spec", "resourceClaims"})) {
    const auto claim = cluster_.get(Res::Claims, sim::ns_of(object), sim::claim_name_of(object, use));
    if (claim == nullptr) continue;
    for (const auto& result : list(*claim, {"status", "allocation", "devices", "results"})) {
      const TaintedDevice named{text(result, {"driver"}), text(result, {"pool"}), text(result, {"device"})};
      if (!tainted_.contains(named)) continue;
      Device device{named.driver, pod.node, fmt::format("{}-{}", sim::uid_of(*claim), named.device)};
      const auto known = before.find(device);
      pod.bad.try_emplace(std::move(device), known == before.end() ? now.mono : known->second);
    }
  }
}

bool ServerTruth::shows_signal(const eviction::EvictPod& eviction, const Json& pod) const {
  const auto known = pods_.find(sim::uid_of(pod));
  if (known != pods_.end() && !known->second.bad.empty()) return true;
  const auto& witness = eviction.signal.witness_uid;
  const auto other = pods_.find(witness);
  if (!witness.empty() && other != pods_.end() && !other->second.bad.empty()) return true;
  for (const auto& rules : policy_.policies) {
    for (const auto& use : list(pod, {"status", "resourceClaimStatuses"})) {
      const auto claim = cluster_.get(Res::Claims, eviction.ns, text(use, {"resourceClaimName"}));
      if (claim == nullptr) continue;
      for (const auto& device : list(*claim, {"status", "devices"})) {
        if (has_condition(device, rules.match.claim_conditions)) return true;
      }
    }
  }
  return false;
}

void ServerTruth::before(const eviction::EvictPod& eviction, bool calm, const Now& now) {
  read_pods(now);
  look_at_brakes(calm && !is_stale_, now);
  before_ = cluster_.get(Res::Pods, eviction.ns, eviction.name);
  const bool may_be = before_ != nullptr && sim::uid_of(*before_) == eviction.uid && !sim::is_deleting(*before_);
  if (!may_be) before_ = nullptr;
}

bool ServerTruth::after(const eviction::EvictPod& eviction, const Now& now) {
  const auto object = cluster_.get(Res::Pods, eviction.ns, eviction.name);
  const bool is_still = object != nullptr && sim::uid_of(*object) == eviction.uid && !sim::is_deleting(*object);
  if (before_ == nullptr || is_still) return !is_still;
  const auto& pod = pods_.at(eviction.uid);
  if (!shows_signal(eviction, *before_)) say("I17", eviction, "the server shows no signal that the policy names");
  check_again(eviction, pod, now);
  check_slots(eviction, pod.node, now);
  check_brake(eviction, pod.node, now);
  const auto grace =
      std::min<Millis>(Seconds(eviction.grace_period_seconds.value_or(pod.grace)), policy_.limits.counted_grace);
  evicted_.push_back({.uid = eviction.uid,
                      .node = pod.node,
                      .scope = eviction.key.scope,
                      .at = now.mono,
                      .holds_until = now.mono + grace + kHangs,
                      .group = eviction.shared_claim_uid});
  for (const auto& [device, since] : pod.bad) lost_[{pod.owner, device}] = {now.mono, numbers_};
  check_rates(eviction, now);
  return true;
}

/// I15: a pod that came after its owner lost one to the same device within the hour.
void ServerTruth::check_again(const eviction::EvictPod& eviction, const Pod& pod, const Now& now) {
  for (const auto& [device, since] : pod.bad) {
    const auto lost = lost_.find({pod.owner, device});
    if (lost == lost_.end()) continue;
    const auto& [at, number] = lost->second;
    if (pod.number <= number || now.mono - at >= hours(1)) continue;
    say("I15", eviction, fmt::format("its owner lost a pod to {} within the hour", device.id));
  }
}

/// I3: the pods that were evicted and still exist.
void ServerTruth::check_slots(const eviction::EvictPod& eviction, const std::string& node, const Now& now) {
  std::int64_t all = 0;
  std::int64_t there = 0;
  for (const auto& one : evicted_) {
    const auto found = pods_.find(one.uid);
    const bool is_there = found != pods_.end() && now.mono < one.holds_until;
    const bool is_together = !eviction.shared_claim_uid.empty() && one.group == eviction.shared_claim_uid;
    if (!is_there || is_together) continue;
    ++all;
    if (one.node == node) ++there;
  }
  const auto& limits = policy_.limits;
  if (all > 0 && all + 1 > limits.max_in_flight) {
    say("I3", eviction, fmt::format("{} evicted pods still exist, maxInFlight is {}", all, limits.max_in_flight));
  }
  if (there > 0 && there + 1 > limits.per_node) {
    say("I3", eviction, fmt::format("{} evicted pods of its node still exist, perNode is {}", there, limits.per_node));
  }
}

/// I3: no more in a minute than a full bucket and what fills it meanwhile. I18: no more in a day than the cap.
void ServerTruth::check_rates(const eviction::EvictPod& eviction, const Now& now) {
  std::int64_t minute = 0;
  std::int64_t day = 0;
  for (const auto& one : evicted_) {
    if (now.mono - one.at < minutes(1)) ++minute;
    if (now.mono - one.at < hours(24) && one.scope == eviction.key.scope) ++day;
  }
  const auto& limits = policy_.limits;
  if (minute > 2 * limits.evictions_per_minute) {
    say("I3", eviction,
        fmt::format("{} evictions within a minute, perMinute is {}", minute, limits.evictions_per_minute));
  }
  const auto devices = known(eviction.key.scope, {});
  const auto most = std::max(limits.cap_per_day.at_least, limits.cap_per_day.percent * devices / 100);
  if (!is_released() && day > most) {
    say("I18", eviction,
        fmt::format("{} evictions within a day, of {} devices caps.perDay allows {}", day, devices, most));
  }
}

/// I12: what a brake holds goes by one trial at a time, and the first when it has stood for long.
void ServerTruth::check_brake(const eviction::EvictPod& eviction, const std::string& node, const Now& now) {
  if (is_released() || !may_judge_brakes_) return;
  for (const auto& place : {Place{eviction.key.scope, node}, Place{eviction.key.scope, {}}}) {
    const auto brake = brakes_.find(place);
    if (brake == brakes_.end()) continue;
    auto& moves_from = brake->second.moves_from;
    const bool is_early = moves_from > now.mono - policy_.limits.brake_trial_after;
    if (is_early) {
      say("I12", eviction,
          fmt::format("the brake of {} on {} has held for {} s", place.first,
                      place.second.empty() ? "the cluster" : place.second, (now.mono - moves_from) / Seconds(1)));
    }
    moves_from = now.mono;
  }
}

/// The most devices that were ever known there: a plugin that is away makes none unknown at once.
std::int64_t ServerTruth::known(const std::string& scope, const std::string& node) {
  const auto& store = cluster_.store();
  const auto newest = [&](Res res) { return store.changes(res).empty() ? 0 : store.changes(res).back().rv; };
  const auto rv = std::max(newest(Res::Nodes), newest(Res::Slices)) + 1;
  auto& [most, counted] = known_[{scope, node}];
  if (counted == rv) return most;
  counted = rv;
  std::int64_t count = 0;
  for (const auto& [name, object] : store.all(Res::Nodes)) {
    if (node.empty() || name.name == node) count += sim::number(*object, {"status", "capacity", scope});
  }
  for (const auto& [name, slice] : store.all(Res::Slices)) {
    if (text(*slice, {"spec", "driver"}) != scope) continue;
    if (node.empty() || text(*slice, {"spec", "nodeName"}) == node) {
      count += static_cast<std::int64_t>(list(*slice, {"spec", "devices"}).size());
    }
  }
  most = std::max(most, count);
  return most;
}

std::int64_t ServerTruth::most_bad(const Place& place) {
  const auto& limits = policy_.limits;
  return std::max(limits.brake_at_least - 1, limits.brake_percent * known(place.first, place.second) / 100);
}

/// Whether an operator has spoken: what he vouches for no longer counts, and this checker does not judge it.
bool ServerTruth::is_released() const {
  if (!policy_.brake_release.empty() || !policy_.cap_release.empty()) return true;
  const auto speaks = [](const auto& entry) {
    const auto* annotations = sim::field(*entry.second, {"metadata", "annotations"});
    return annotations != nullptr &&
           (annotations->contains(kAcknowledgeAnnotation) || annotations->contains(kBrakeReleaseAnnotation) ||
            annotations->contains(kCapReleaseAnnotation));
  };
  return std::ranges::any_of(cluster_.store().all(Res::Nodes), speaks) ||
         std::ranges::any_of(cluster_.store().all(Res::TaintRules), speaks);
}

void ServerTruth::look_at_brakes(bool calm, const Now& now) {
  if (!means_all_pods(policy_)) return brakes_.clear();
  struct Tally {
    std::set<std::pair<std::string, std::string>> standing;
    std::set<std::pair<std::string, std::string>> recent;
  };
  std::map<Place, Tally> tallies;
  const auto& limits = policy_.limits;
  for (const auto& uid : sick_) {
    const auto& pod = pods_.at(uid);
    if (!pod.is_live) continue;
    for (const auto& [device, since] : pod.bad) {
      const std::pair card{device.node, device.id.substr(0, device.id.find("::"))};
      for (const auto& place : {Place{device.scope, device.node}, Place{device.scope, {}}}) {
        auto& tally = tallies[place];
        tally.standing.insert(card);
        if (now.mono - since < limits.brake_within) tally.recent.insert(card);
      }
    }
  }
  for (auto& [place, tally] : tallies) {
    const auto standing = static_cast<std::int64_t>(tally.standing.size());
    const auto recent = static_cast<std::int64_t>(tally.recent.size());
    if (standing < limits.brake_at_least || standing <= most_bad(place)) continue;
    // A controller that does not know all may have engaged it already.
    const auto since = exceeded_.try_emplace(place, now.mono).first->second;
    if (calm && recent > most_bad(place)) brakes_.try_emplace(place, Engaged{since, {}});
  }
  std::erase_if(exceeded_, [&](const auto& entry) {
    const auto tally = tallies.find(entry.first);
    return !brakes_.contains(entry.first) &&
           (tally == tallies.end() ||
            static_cast<std::int64_t>(tally->second.standing.size()) <= most_bad(entry.first));
  });
  const auto is_over = [&](std::map<Place, Engaged>::value_type& entry) {
    const auto& place = entry.first;
    const auto tally = tallies.find(place);
    const auto standing = tally == tallies.end() ? 0 : static_cast<std::int64_t>(tally->second.standing.size());
    auto& low_since = entry.second.low_since;
    if (standing > most_bad(place)) {
      low_since.reset();
      return false;
    }
    if (!low_since) low_since = now.mono;
    return now.mono - *low_since >= kBrakeSettle;
  };
  for (auto entry = brakes_.begin(); entry != brakes_.end();) {
    entry = is_over(*entry) ? brakes_.erase(entry) : std::next(entry);
  }
}

/// I4: who is on a bad device for long is evicted, or carries a reason.
void ServerTruth::look_at_reasons(const std::vector<Verdict>& verdicts, bool calm, const Now& now) {
  if (!calm || !means_all_pods(policy_)) return calm_since_.reset();
  if (!calm_since_) calm_since_ = now.mono;
  if (now.mono - *calm_since_ < kPatience) return;
  const auto after = policy_.policies.front().after;
  for (const auto& uid : sick_) {
    const auto& pod = pods_.at(uid);
    if (!pod.is_live || unexplained_.contains(uid)) continue;
    const bool is_long =
        std::ranges::any_of(pod.bad, [&](const auto& entry) { return now.mono - entry.second >= after + kPatience; });
    if (!is_long) continue;
    const bool has_reason =
        std::ranges::any_of(verdicts, [&](const Verdict& verdict) { return verdict.subject.uid == uid; });
    if (has_reason) continue;
    unexplained_.insert(uid);
    broken_.push_back(
        fmt::format("I4: {} is on the bad device {}, and carries no reason", pod.name, pod.bad.begin()->first.id));
  }
}

void ServerTruth::look(const std::vector<Verdict>& verdicts, bool calm, const Now& now) {
  read_pods(now);
  const bool knows_all = calm && !is_stale_;
  look_at_brakes(knows_all, now);
  look_at_reasons(verdicts, knows_all, now);
}

}  // namespace dhc::test
