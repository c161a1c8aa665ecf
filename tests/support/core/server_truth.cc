#include "tests/support/core/server_truth.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/job_record.h"
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

/// Whether an operator's time covers what began then, and the minute within which everybody has seen it. One ahead of
/// the clock covers nothing.
bool speaks_for(std::string_view value, WallTime began, const Now& now) {
  const auto said = parse_rfc3339(value);
  return said && *said <= now.wall && began - minutes(1) <= *said;
}

/// The state has times in whole seconds: after a restart a brake's trial, or what waits for an hour, may come so much
/// earlier.
constexpr Millis kWholeSeconds{999};

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

void ServerTruth::told(const Policy& policy) {
  policy_ = policy;
  taken_.begun_anew();
}

void ServerTruth::restarted() {
  calm_since_.reset();
  is_stale_ = false;
  if (policy_.own_namespace.empty()) forget();
}

void ServerTruth::memory_lost() {
  forget();
  for (auto& one : evicted_) one.is_forgotten = true;
}

void ServerTruth::forget() {
  brakes_.clear();
  lost_.clear();
  gone_.clear();
  taken_.begun_anew();
}

void ServerTruth::etcd_restored() {
  is_stale_ = true;
  // What the controller has written went back too: a later process does not know of these.
  evicted_.clear();
  lost_.clear();
  gone_.clear();
  // Since when a device is bad went back as well, and a brake that had been released may be found again.
  brakes_.clear();
  exceeded_.clear();
  doubtful_.merge(ever_bad_);
  ever_bad_.clear();
  is_restored_ = true;
  taken_.etcd_restored();
}

void ServerTruth::clock_set(Millis by) {
  clock_sets_.emplace_back(looked_at_, by);
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
  // What the restored pods say of their devices is said anew, and was not anew then.
  if (std::exchange(is_restored_, false)) doubtful_.merge(ever_bad_);
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
        if (text(one, {"health"}) == "Healthy") {
          taken_.healed(DeviceKey::plugin(device.node, device.scope, device.id.substr(0, device.id.find("::"))));
        }
        if (!is_meant(device, text(one, {"health"}))) continue;
        const auto before = pod.bad.find(device);
        bad.emplace(std::move(device), before == pod.bad.end() ? now.mono : before->second);
      }
    }
  }
  const auto before = std::exchange(pod.bad, std::move(bad));
  add_tainted(object, pod, before, now);
  for (const auto& [device, since] : pod.bad) ever_bad_.insert(device);
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

/// The gang that goes together by its name; empty: none.
std::string ServerTruth::gang_of(const Json& pod) const {
  const auto says_together = [](const DevicePolicy& rules) { return rules.evict && rules.evict->groups_together; };
  if (std::ranges::none_of(policy_.policies, says_together)) return {};
  const auto mark = std::string(kGangMark);
  auto name = text(pod, {"metadata", "annotations", mark});
  if (name.empty()) name = text(pod, {"metadata", "labels", mark});
  if (name.empty()) name = text(pod, {"spec", "schedulingGroup", "podGroupName"});
  return name.empty() ? name : text(pod, {"metadata", "namespace"}) + "/" + name;
}

/// With whom the pod goes: the other holders of a shared claim, or its gang; empty: alone.
std::string ServerTruth::group_of(const eviction::EvictPod& eviction, const Json& pod) const {
  return eviction.shared_claim_uid.empty() ? gang_of(pod) : eviction.shared_claim_uid;
}

/// Of a PodGroup that is disrupted only as a whole no pod goes before others of it, but with its gang.
void ServerTruth::check_group(const eviction::EvictPod& eviction, const Json& pod) {
  const auto name = text(pod, {"spec", "schedulingGroup", "podGroupName"});
  const auto group = name.empty() ? nullptr : cluster_.get(Res::PodGroups, eviction.ns, name);
  if (group == nullptr || sim::field(*group, {"spec", "disruptionMode", "all"}) == nullptr) return;
  if (!gang_of(pod).empty()) return;
  for (const auto& [other, object] : cluster_.store().all(Res::Pods)) {
    const bool stays = other.ns == eviction.ns && other.name != eviction.name && !sim::is_deleting(*object) &&
                       text(*object, {"spec", "schedulingGroup", "podGroupName"}) == name &&
                       sim::text(*object, {"status", "phase"}) == "Running";
    if (stays) return say("group", eviction, fmt::format("{} of PodGroup {} stays", other.name, name));
  }
}

/// A pod of a gang of which one is on a bad device, and may be thought to go: somebody said that its eviction was
/// accepted.
bool ServerTruth::goes_with_its_gang(const Json& pod) const {
  const auto gang = gang_of(pod);
  return !gang.empty() && std::ranges::any_of(cluster_.store().all(Res::Pods), [&](const auto& entry) {
    return sick_.contains(sim::uid_of(*entry.second)) && gang_of(*entry.second) == gang;
  });
}

/// A pod of a gang of which one on a bad device has gone.
bool ServerTruth::follows_its_gang(const Json& pod, const Now& now) const {
  const auto begun = begun_.find(gang_of(pod));
  return begun != begun_.end() && now.mono - begun->second < std::chrono::hours(1);
}

/// Nobody of a gang goes while a budget allows fewer than all of them, and a half gang is another gang's beginning for
/// no one.
void ServerTruth::check_gang(const eviction::EvictPod& eviction, const Json& pod, const Now& now) {
  const auto gang = gang_of(pod);
  if (gang.empty() || follows_its_gang(pod, now)) return;
  begun_[gang] = now.mono;
  if (!was_calm_) return;
  for (const auto& [name, budget] : cluster_.store().all(Res::Budgets)) {
    const auto* selector = sim::field(*budget, {"spec", "selector"});
    if (name.ns != eviction.ns || selector == nullptr) continue;
    std::int64_t selected = 1;  // the one that has just gone
    for (const auto& [other, object] : cluster_.store().all(Res::Pods)) {
      const bool counts = gang_of(*object) == gang && sim::text(*object, {"status", "phase"}) == "Running" &&
                          !sim::is_deleting(*object) && sim::label_selector_matches(*selector, *object);
      selected += counts ? 1 : 0;
    }
    const auto allowed = sim::number(*budget, {"status", "disruptionsAllowed"}) + 1;
    if (sim::label_selector_matches(*selector, pod) && allowed < selected)
      say("gang", eviction, fmt::format("budget {} allows {} of {}", name.name, allowed, selected));
  }
}

/// Whoever goes on a credit goes while its Job has it, whatever the watches show.
void ServerTruth::check_credit(const eviction::EvictPod& eviction) {
  if (!eviction.retry || !eviction.retry->has_credit) return;
  const auto job = cluster_.get(Res::Jobs, eviction.ns, eviction.retry->job_name);
  if (job == nullptr || sim::uid_of(*job) != eviction.retry->job_uid) return;
  const auto record =
      parse_retry_credits(text(*job, {"metadata", "annotations", std::string(kRetryCreditsAnnotation)}));
  if (!record || record->find(eviction.uid) == nullptr)
    say("I17", eviction, fmt::format("Job {} has no credit for it", eviction.retry->job_name));
}

void ServerTruth::before(const eviction::EvictPod& eviction, bool calm, const Now& now) {
  read_pods(now);
  was_calm_ = calm;
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
  if (!shows_signal(eviction, *before_) && !follows_its_gang(*before_, now) && !goes_with_its_gang(*before_))
    say("I17", eviction, "the server shows no signal that the policy names");
  check_gang(eviction, *before_, now);
  check_group(eviction, *before_);
  check_credit(eviction);
  check_again(eviction, pod, now);
  check_slots(eviction, pod.node, now);
  check_brake(eviction, pod.node, now);
  const auto grace =
      std::min<Millis>(Seconds(eviction.grace_period_seconds.value_or(pod.grace)), policy_.limits.counted_grace);
  evicted_.push_back({.uid = eviction.uid,
                      .node = pod.node,
                      .scope = eviction.key.scope,
                      .at = now,
                      .holds_until = now.mono + grace + kHangs,
                      .group = group_of(eviction, *before_)});
  for (const auto& [device, since] : pod.bad) lost_[{pod.owner, device}] = {now.mono, numbers_};
  check_rates(eviction, now);
  check_workload(eviction, now);
  taken_.evicted(eviction.key, now);
  return true;
}

void ServerTruth::after(const taint::ApplyRule& rule, bool calm, const Now& now) {
  const auto key = DeviceKey::dra(rule.driver, rule.pool, rule.device_name);
  if (rule.effect != "NoSchedule" || taken_.has(key)) return;
  const auto stored = cluster_.get(Res::TaintRules, {}, rule.name);
  if (stored == nullptr || text(*stored, {"spec", "taint", "effect"}) != rule.effect) return;
  read_pods(now);
  look_at_brakes(calm && !is_stale_, now);
  if (const auto held = held_by_brake(rule.driver, rule.pool, to_string(key), now)) {
    broken_.push_back(fmt::format("I12: taint of {}: {}", to_string(key), *held));
  }
}

void ServerTruth::after(const job_retry::PatchJob& patch, bool calm, const Now& now) {
  const auto job = cluster_.get(Res::Jobs, patch.ns, patch.name);
  if (patch.limit <= patch.limit_before || job == nullptr || sim::uid_of(*job) != patch.uid) return;
  if (sim::number(*job, {"spec", "backoffLimit"}) != patch.limit) return;
  read_pods(now);
  look_at_brakes(calm && !is_stale_, now);
  for (const auto& [place, brake] : brakes_) {
    const auto of_node = "/" + place.second + "/";
    const auto named = "/" + patch.device;
    const bool is_there = named.contains("/" + place.first + "/") && (place.second.empty() || named.contains(of_node));
    if (!is_there) continue;
    if (const auto held = held_by_brake(place.first, place.second, patch.device, now)) {
      broken_.push_back(fmt::format("I12: retry of {}/{} for {}: {}", patch.ns, patch.name, patch.device, *held));
      return;
    }
  }
}

/// I15: a pod that came after its owner lost one to the same device within the hour.
void ServerTruth::check_again(const eviction::EvictPod& eviction, const Pod& pod, const Now& now) {
  for (const auto& [device, since] : pod.bad) {
    const auto lost = lost_.find({pod.owner, device});
    if (lost == lost_.end()) continue;
    const auto& [at, number] = lost->second;
    if (pod.number <= number || now.mono - at >= hours(1) - kWholeSeconds) continue;
    say("I15", eviction, fmt::format("its owner lost a pod to {} within the hour", device.id));
  }
}

/// I3: the pods that were evicted and still exist.
void ServerTruth::check_slots(const eviction::EvictPod& eviction, const std::string& node, const Now& now) {
  std::int64_t all = 0;
  std::int64_t there = 0;
  std::string names;
  const auto group = group_of(eviction, *before_);
  for (const auto& one : evicted_) {
    const auto found = pods_.find(one.uid);
    const bool is_there = found != pods_.end() && now.mono < one.holds_until;
    const bool is_together = !group.empty() && one.group == group;
    if (!is_there || is_together) continue;
    ++all;
    if (one.node == node) ++there;
    names += (names.empty() ? "" : ", ") + found->second.name;
  }
  const auto& limits = policy_.limits;
  if (all > 0 && all + 1 > limits.max_in_flight) {
    say("I3", eviction,
        fmt::format("{} evicted pods still exist ({}), maxInFlight is {}", all, names, limits.max_in_flight));
  }
  if (there > 0 && there + 1 > limits.per_node) {
    say("I3", eviction,
        fmt::format("{} evicted pods of its node still exist (of {}), perNode is {}", there, names, limits.per_node));
  }
}

/// I3: no more in a minute than a full bucket and what fills it meanwhile, or those who go together, however many they
/// are. I18: no more in a day than the cap.
void ServerTruth::check_rates(const eviction::EvictPod& eviction, const Now& now) {
  const auto& limits = policy_.limits;
  std::int64_t minute = 0;
  std::int64_t day = 0;
  std::map<std::string_view, std::int64_t> together;
  for (const auto& one : evicted_) {
    if (now.mono - one.at.mono < minutes(1)) {
      ++minute;
      if (!one.group.empty()) ++together[one.group];
    }
    const bool is_released = one.is_forgotten || speaks_for(policy_.cap_release, one.at.wall, now);
    if (now.mono - one.at.mono < hours(24) && one.scope == eviction.key.scope && !is_released) ++day;
  }
  auto at_once = limits.evictions_per_minute;
  for (const auto& [group, pods] : together) at_once = std::max(at_once, pods);
  if (minute > limits.evictions_per_minute + at_once) {
    say("I3", eviction,
        fmt::format("{} evictions within a minute, perMinute is {}", minute, limits.evictions_per_minute));
  }
  const auto devices = known(eviction.key.scope, {});
  const auto most = std::max(limits.cap_per_day.at_least, limits.cap_per_day.percent * devices / 100);
  if (day > most) {
    say("I18", eviction,
        fmt::format("{} evictions within a day, of {} devices caps.perDay allows {}", day, devices, most));
  }
}

/// I18: no more devices of a workload in a day than its cap. The simulator's owners above a ReplicaSet are Deployments.
void ServerTruth::check_workload(const eviction::EvictPod& eviction, const Now& now) {
  const auto named = [](const Json& controller) {
    return text(controller, {"kind"}) + "/" + text(controller, {"name"});
  };
  const auto* controller = sim::controller_of(*before_);
  auto workload = eviction.ns + "/" + (controller == nullptr ? "Pod/" + eviction.name : named(*controller));
  if (controller != nullptr && text(*controller, {"kind"}) == "ReplicaSet") {
    const auto set = cluster_.get(Res::ReplicaSets, eviction.ns, text(*controller, {"name"}));
    const auto* above = set == nullptr ? nullptr : sim::controller_of(*set);
    if (above != nullptr) workload = eviction.ns + "/" + named(*above);
  }
  auto card = eviction.key;
  if (card.source == DeviceKey::Source::Plugin) card.device = card_of_plugin_id(card.device).id;
  auto& gone = gone_[{workload, card.scope}];
  gone[to_string(card)] = now;
  std::erase_if(gone, [&](const auto& entry) {
    return now.mono - entry.second.mono >= hours(24) || speaks_for(policy_.cap_release, entry.second.wall, now);
  });
  const auto& cap = policy_.limits.cap_owner_per_day;
  const auto most = std::max(cap.at_least, cap.percent * known(card.scope, {}) / 100);
  if (std::cmp_less_equal(gone.size(), most)) return;
  say("I18", eviction,
      fmt::format("{} devices of {} within a day, caps.ownerDevicesPerDay allows {}", gone.size(), workload, most));
}

/// I12: what a brake holds goes by one trial at a time, and the first when it has stood for long. What a trial needs,
/// the taint and the retry, comes with it.
std::optional<std::string> ServerTruth::held_by_brake(const std::string& scope, const std::string& node,
                                                      const std::string& device, const Now& now) const {
  for (const auto& place : {Place{scope, node}, Place{scope, {}}}) {
    const auto brake = brakes_.find(place);
    if (brake == brakes_.end() || (!device.empty() && brake->second.tried == device)) continue;
    const auto moves_from = brake->second.moves_from;
    if (moves_from <= now.mono + kWholeSeconds - policy_.limits.brake_trial_after) continue;
    return fmt::format("the brake of {} on {} has held for {} s", place.first,
                       place.second.empty() ? "the cluster" : place.second, (now.mono - moves_from) / Seconds(1));
  }
  return std::nullopt;
}

void ServerTruth::check_brake(const eviction::EvictPod& eviction, const std::string& node, const Now& now) {
  for (const auto& place : {Place{eviction.key.scope, node}, Place{eviction.key.scope, {}}}) {
    const auto brake = brakes_.find(place);
    if (brake == brakes_.end()) continue;
    auto& [moves_from, low_since, tried] = brake->second;
    if (moves_from > now.mono + kWholeSeconds - policy_.limits.brake_trial_after) {
      say("I12", eviction,
          fmt::format("the brake of {} on {} has held for {} s", place.first,
                      place.second.empty() ? "the cluster" : place.second, (now.mono - moves_from) / Seconds(1)));
    }
    moves_from = now.mono;
    tried = to_string(eviction.key);
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

/// What operators have written on nodes and on our rules, when any of them has changed.
void ServerTruth::read_words() {
  const auto& store = cluster_.store();
  const auto newest = [&](Res res) { return store.changes(res).empty() ? 0 : store.changes(res).back().rv; };
  const std::pair version{store.server(), std::max(newest(Res::Nodes), newest(Res::TaintRules)) + 1};
  if (std::exchange(words_of_, version) == version) return;
  node_words_.clear();
  rule_words_.clear();
  for (const auto& [name, node] : store.all(Res::Nodes)) {
    const NodeWords words{.acknowledged = text(*node, {"metadata", "annotations", kAcknowledgeAnnotation}),
                          .released = text(*node, {"metadata", "annotations", kBrakeReleaseAnnotation})};
    if (!words.acknowledged.empty() || !words.released.empty()) node_words_[name.name] = words;
  }
  for (const auto& [name, rule] : store.all(Res::TaintRules)) {
    if (sim::field(*rule, {"metadata", "annotations", kAcknowledgeAnnotation}) == nullptr) continue;
    const auto of = [&](std::string_view part) { return text(*rule, {"spec", "deviceSelector", part}); };
    rule_words_.insert({.driver = of("driver"), .pool = of("pool"), .device = of("device")});
  }
}

/// Whether an operator has acknowledged what has been wrong with the device since then.
bool ServerTruth::is_excused(const Device& device, WallTime since, const Now& now) {
  if (excused_.contains(device)) return true;
  const auto words = node_words_.find(device.node);
  const bool of_node = words != node_words_.end() && speaks_for(words->second.acknowledged, since, now);
  const bool of_rule = std::ranges::any_of(rule_words_, [&](const TaintedDevice& named) {
    return named.driver == device.scope && named.pool == device.node && device.id.ends_with(named.device);
  });
  if (of_node || of_rule) excused_.insert(device);
  return of_node || of_rule;
}

bool ServerTruth::is_released(const Place& place, WallTime since, const Now& now) const {
  if (place.second.empty()) return speaks_for(policy_.brake_release, since, now);
  const auto words = node_words_.find(place.second);
  return words != node_words_.end() && speaks_for(words->second.released, since, now);
}

/// How long ago that may be for a process that has it from what one before it wrote down.
Millis ServerTruth::at_most_since(MonoTime since, const Now& now) const {
  auto span = std::chrono::duration_cast<Millis>(now.mono - since);
  for (const auto& [at, by] : clock_sets_) {
    if (at >= since) span += by;
  }
  return span;
}

std::map<ServerTruth::Place, ServerTruth::Tally> ServerTruth::tally(const Now& now) {
  std::map<Place, Tally> tallies;
  std::set<Device> bad;
  for (const auto& uid : sick_) {
    const auto& pod = pods_.at(uid);
    for (const auto& [device, since] : pod.bad) {
      bad.insert(device);
      if (!pod.is_live || doubtful_.contains(device)) continue;
      const auto since_wall = now.wall - (now.mono - since);
      const bool is_vouched_for = is_excused(device, since_wall, now);
      const std::pair card{device.node, device.id.substr(0, device.id.find("::"))};
      for (const auto& place : {Place{device.scope, device.node}, Place{device.scope, {}}}) {
        auto& tally = tallies[place];
        if (is_vouched_for || is_released(place, since_wall, now)) {
          tally.is_released = true;
          continue;
        }
        tally.standing.insert(card);
        if (at_most_since(since, now) < policy_.limits.brake_within) tally.recent.insert(card);
      }
    }
  }
  std::erase_if(excused_, [&](const auto& device) { return !bad.contains(device); });
  if (!is_stale_) std::erase_if(doubtful_, [&](const auto& device) { return !bad.contains(device); });
  return tallies;
}

void ServerTruth::look_at_brakes(bool calm, const Now& now) {
  if (!means_all_pods(policy_)) return brakes_.clear();
  read_words();
  auto tallies = tally(now);
  const auto& limits = policy_.limits;
  for (auto& [place, tally] : tallies) {
    const auto standing = static_cast<std::int64_t>(tally.standing.size());
    const auto recent = static_cast<std::int64_t>(tally.recent.size());
    if (standing < limits.brake_at_least || standing <= most_bad(place)) continue;
    // A controller that does not know all may have engaged it already.
    const auto since = exceeded_.try_emplace(place, now.mono).first->second;
    if (calm && recent > most_bad(place))
      brakes_.try_emplace(place, Engaged{.moves_from = since, .low_since = {}, .tried = {}});
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
    // What somebody vouches for is no longer waited for.
    if (tally != tallies.end() && tally->second.is_released) return true;
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
  looked_at_ = now.mono;
  read_pods(now);
  const bool knows_all = calm && !is_stale_;
  look_at_brakes(knows_all, now);
  look_at_reasons(verdicts, knows_all, now);
  if (policy_.own_namespace.empty()) return;
  taken_.look(policy_, [&](const auto& scope, const auto& node) { return known(scope, node); }, knows_all, now);
  for (auto& text : taken_.take_broken()) broken_.push_back(std::move(text));
}

}  // namespace dhc::test
