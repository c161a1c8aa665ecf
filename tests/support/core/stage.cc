#include "tests/support/core/stage.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/contract/state_names.h"
#include "tests/support/core/wide_caps.h"

namespace dhc::test {

k8s::ConfigMap state_map(std::string text, const std::string& ns) {
  k8s::ConfigMap map;
  map.meta.ns = ns;
  map.meta.name = kIncidentsName;
  map.meta.uid = "uid-state";
  map.data = {{std::string(kIncidentsEntry), std::move(text)}};
  return map;
}

Stage::Stage() {
  policy_.mode_cap = Mode::Enforce;
  policy_.policies.push_back(
      DevicePolicy{.name = "p", .mode = Mode::Enforce, .after = Seconds(60), .evict = EvictRules{}});
  policy().recover = {.hold = std::chrono::hours(24), .half_life = std::chrono::hours(720)};
  policy_.limits.evictions_per_minute = 60;
  k8s::Namespace ns;
  ns.meta.name = "default";
  ns.meta.uid = "uid-ns";
  put(std::move(ns));
  restart();
}

Now Stage::now() const {
  const auto start = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) + std::chrono::hours(12);
  return {.mono = MonoTime(std::chrono::hours(1) + elapsed_), .wall = WallTime(start) + elapsed_ + clock_ahead_};
}

void Stage::restart() {
  controller_ = Controller();
  relist();
  send_policy();
}

void Stage::relist() {
  waiting_.clear();
  for (auto& list : lists()) waiting_.emplace_back(std::move(list));
  const auto* earlier = find_as<k8s::ConfigMap>(k8s::Kind::ConfigMap, std::string(kStateName));
  waiting_.emplace_back(EarlierState{earlier == nullptr ? std::nullopt : std::optional(*earlier)});
}

std::vector<k8s::Delivery> Stage::lists() const {
  std::vector<k8s::Delivery> all;
  for (const auto kind : k8s::kAllKinds) {
    k8s::Snapshot snapshot{.kind = kind, .objects = {}, .served = true};
    for (const auto& [number, object] : objects_) {
      if (k8s::kind_of(object) == kind) snapshot.objects.push_back(object);
    }
    all.emplace_back(std::move(snapshot));
  }
  return all;
}

void Stage::send_policy() {
  auto policy = std::make_shared<Policy>(policy_);
  if (!caps_hold_) widen_caps(policy->limits);
  waiting_.emplace_back(PolicyChanged{std::move(policy)});
}

k8s::Object* Stage::find(k8s::Kind kind, const std::string& name) {
  const auto place = places_.find({kind, name});
  return place == places_.end() ? nullptr : &objects_.at(place->second);
}

template <class T>
T* Stage::find_as(k8s::Kind kind, const std::string& name) {
  return std::get_if<T>(find(kind, name));
}

void Stage::bump(k8s::Meta& meta) { meta.resource_version = std::to_string(++version_); }

void Stage::put(k8s::Object object) {
  std::visit([this](auto& value) { bump(value.meta); }, object);
  const auto next = objects_.empty() ? 0 : objects_.rbegin()->first + 1;
  const auto place = places_.try_emplace({k8s::kind_of(object), k8s::meta_of(object).name}, next).first;
  objects_.insert_or_assign(place->second, object);
  waiting_.emplace_back(k8s::Delivery(k8s::Upsert{std::move(object)}));
}

void Stage::node(const std::string& name, std::int64_t capacity, std::optional<std::int64_t> allocatable, bool ready) {
  k8s::Node node;
  node.meta.name = name;
  node.meta.uid = "uid-" + name;
  node.ready = ready;
  node.boot_id = "boot-1";
  node.kubelet_version = "v1.37.1";
  node.capacity = {{std::string(kGpu), capacity}};
  node.allocatable = {{std::string(kGpu), allocatable.value_or(capacity)}};
  put(node);
}

void Stage::put_owner(const k8s::OwnerRef& owner) {
  const auto kind = owner.kind == "Job"           ? k8s::Kind::Job
                    : owner.kind == "StatefulSet" ? k8s::Kind::StatefulSet
                                                  : k8s::Kind::ReplicaSet;
  if (find(kind, owner.name) != nullptr) return;
  if (kind == k8s::Kind::Job) {
    k8s::Job job;
    job.meta.ns = "default";
    job.meta.name = owner.name;
    job.meta.uid = owner.uid;
    return put(job);
  }
  k8s::Owner object;
  object.kind = kind;
  object.meta.ns = "default";
  object.meta.name = owner.name;
  object.meta.uid = owner.uid;
  put(object);
}

k8s::Pod& Stage::pod(const PodSpec& spec) {
  k8s::Pod pod;
  pod.meta.ns = spec.ns;
  pod.meta.name = spec.name;
  pod.meta.uid = "uid-" + spec.name;
  pod.node_name = spec.node;
  pod.phase = spec.phase;
  pod.grace_period_seconds = 30;
  if (const auto slash = spec.owner.find('/'); slash != std::string::npos) {
    const auto name = spec.owner.substr(slash + 1);
    pod.meta.controller = k8s::OwnerRef{.api_version = spec.owner.starts_with("Job/") ? "batch/v1" : "apps/v1",
                                        .kind = spec.owner.substr(0, slash),
                                        .name = name,
                                        .uid = "uid-" + name};
  }
  if (!spec.device.empty()) {
    pod.requests = {{std::string(kGpu), 1}};
    pod.allocated = {{std::string(kGpu), {{spec.device, spec.health, spec.message}}}};
  }
  if (!spec.claim.empty()) {
    pod.claims = {{"gpu", spec.claim}};
    pod.allocated = {{"claim:gpu", {{"cdi/gpu=x", spec.health, spec.message}}}};
  }
  if (const auto& owner = pod.meta.controller;
      owner && (owner->kind == "Job" || owner->kind == "ReplicaSet" || owner->kind == "StatefulSet"))
    put_owner(*owner);
  if (spec.ns != "default") {
    k8s::Namespace ns;
    ns.meta.name = spec.ns;
    put(std::move(ns));
  }
  put(std::move(pod));
  return pod_named(spec.name);
}

k8s::Pod& Stage::pod_named(const std::string& name) { return *find_as<k8s::Pod>(k8s::Kind::Pod, name); }

k8s::Job& Stage::job_named(const std::string& name) { return *find_as<k8s::Job>(k8s::Kind::Job, name); }

void Stage::upsert_job(const std::string& name) { put(job_named(name)); }

void Stage::upsert_pod(const std::string& name) { put(pod_named(name)); }

void Stage::report(const std::string& pod, k8s::Health health, const std::string& message) {
  auto& object = pod_named(pod);
  for (auto& entry : object.allocated) {
    for (auto& device : entry.devices) {
      device.health = health;
      device.message = message;
      device.other_word = {};
    }
  }
  upsert_pod(pod);
}

void Stage::remove_pod(const std::string& name) { remove(k8s::Kind::Pod, name); }

k8s::ResourceClaim& Stage::claim(const std::string& name, const std::vector<std::string>& devices,
                                 const std::string& owner_pod) {
  k8s::ResourceClaim claim;
  claim.meta.ns = "default";
  claim.meta.name = name;
  claim.meta.uid = "uid-" + name;
  if (!owner_pod.empty()) {
    claim.meta.controller =
        k8s::OwnerRef{.api_version = "v1", .kind = "Pod", .name = owner_pod, .uid = "uid-" + owner_pod};
  }
  claim.allocated = !devices.empty();
  for (const auto& device : devices) {
    claim.results.push_back({.request = "gpu", .driver = std::string(kDriver), .pool = "node-a", .device = device});
  }
  put(std::move(claim));
  return *find_as<k8s::ResourceClaim>(k8s::Kind::ResourceClaim, name);
}

void Stage::upsert_claim(const std::string& name) { put(*find_as<k8s::ResourceClaim>(k8s::Kind::ResourceClaim, name)); }

void Stage::slice(const std::string& node, const std::vector<std::string>& devices,
                  const std::vector<std::string>& tainted) {
  k8s::ResourceSlice slice;
  slice.meta.name = "slice-" + node;
  slice.meta.uid = "uid-slice-" + node;
  slice.driver = kDriver;
  slice.pool = node;
  slice.generation = 1;
  slice.node_name = node;
  for (const auto& device : devices) {
    const bool bad = std::ranges::find(tainted, device) != tainted.end();
    slice.devices.push_back(
        {.name = device,
         .taints = bad ? std::vector<k8s::Taint>{{"example.com/bad", "", "NoSchedule"}} : std::vector<k8s::Taint>{}});
  }
  put(std::move(slice));
}

std::vector<Action> Stage::turn() {
  auto messages = std::exchange(waiting_, {});
  for (const auto kind : k8s::kAllKinds) {
    if (silent_.contains(kind)) continue;
    messages.emplace_back(k8s::Delivery(k8s::Told{.kind = kind, .name = {}, .at = now().mono}));
  }
  auto turn = oracle_.turn(controller_, messages, now());
  recalls_ = turn.recalls;
  wake_at_ = turn.wake_at;
  auto actions = std::move(turn.actions);
  std::ranges::move(controller_.take_doubts(), std::back_inserter(doubts_));
  for (const auto& action : actions) {
    if (const auto* event = std::get_if<notice::EmitEvent>(&action)) events_.push_back(*event);
    if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) applied_.push_back(*condition);
    if (const auto* patch = std::get_if<job_retry::PatchJob>(&action)) patches_.push_back(*patch);
    note_write(action);
  }
  return actions;
}

void Stage::remove(k8s::Kind kind, const std::string& name) {
  const auto place = places_.find({kind, name});
  if (place == places_.end()) return;
  const auto object = objects_.find(place->second);
  const auto& meta = k8s::meta_of(object->second);
  waiting_.emplace_back(k8s::Delivery(k8s::Remove{.kind = kind, .ns = meta.ns, .name = name, .uid = meta.uid}));
  objects_.erase(object);
  places_.erase(place);
}

k8s::DeviceTaintRule* Stage::rule() {
  for (auto& [number, object] : objects_) {
    if (auto* rule = std::get_if<k8s::DeviceTaintRule>(&object); rule != nullptr && is_our_rule(*rule)) return rule;
  }
  return nullptr;
}

k8s::DeviceTaintRule* Stage::rule_called(const std::string& name) {
  return find_as<k8s::DeviceTaintRule>(k8s::Kind::DeviceTaintRule, name);
}

std::ptrdiff_t Stage::count(k8s::Kind kind) const {
  return std::ranges::count_if(places_, [&](const auto& place) { return place.first.first == kind; });
}

k8s::Node& Stage::node_named(const std::string& name) { return *find_as<k8s::Node>(k8s::Kind::Node, name); }

std::string Stage::state_text() const {
  const auto place = places_.find({k8s::Kind::ConfigMap, std::string(kIncidentsName)});
  if (place == places_.end()) return {};
  return std::get<k8s::ConfigMap>(objects_.at(place->second)).data.find(kIncidentsEntry)->second;
}

void Stage::note_write(const Action& action) {
  if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
    writes_.push_back("apply " + apply->effect + " " + apply->device_name);
  } else if (const auto* removal = std::get_if<taint::DeleteRule>(&action)) {
    writes_.push_back("delete " + removal->key.device);
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) {
    writes_.push_back((patch->add ? "taint " : "untaint ") + patch->node);
  } else if (const auto* told = std::get_if<hand_over::ApplyNodeConditions>(&action)) {
    writes_.push_back(told->words());
  } else if (const auto* make = std::get_if<hand_over::MakeObject>(&action)) {
    writes_.push_back(make->words());
  } else if (const auto* unmake = std::get_if<hand_over::RemoveObject>(&action)) {
    writes_.push_back(unmake->words());
  } else if (std::holds_alternative<incident_state::WriteState>(action)) {
    writes_.emplace_back("state");
  } else if (std::holds_alternative<status::WriteStatus>(action)) {
    writes_.emplace_back("status");
  } else if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    writes_.push_back("evict " + evict->name);
  } else if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    writes_.push_back("condition " + condition->name);
  }
}

/// An apply that names no annotation takes away the one that it has made.
void Stage::show_notice(const std::string& text, k8s::Pod& pod) {
  const bool ours = !text.empty() || noticed_.contains(pod.meta.name);
  if (!ours) return;
  pod.meta.annotations.erase_if([](const auto& entry) { return entry.first == kNoticeAnnotation; });
  noticed_.erase(pod.meta.name);
  if (text.empty()) return;
  pod.meta.annotations.emplace_back(kNoticeAnnotation, text);
  pod.meta.annotations.sort();
  noticed_.insert(pod.meta.name);
}

void Stage::show(const taint::ApplyRule& apply) {
  k8s::DeviceTaintRule made;
  if (const auto* old = find_as<k8s::DeviceTaintRule>(k8s::Kind::DeviceTaintRule, apply.name)) made = *old;
  if (made.meta.uid.empty()) {
    made.meta.uid = "uid-rule-" + std::to_string(++version_);
    made.meta.creation = now().wall;
  }
  made.meta.name = apply.name;
  made.meta.labels = {{std::string(kManagedByLabel), std::string(kManagedBy)},
                      {std::string(kDeviceLabel), label_value(apply.device_name)}};
  made.meta.annotations = {{std::string(kEffectAnnotation), apply.effect},
                           {std::string(kPolicyAnnotation), apply.policy},
                           {std::string(kSinceAnnotation), format_rfc3339(apply.since)}};
  if (apply.same_card_as.empty()) {
    made.meta.annotations.emplace_back(kIncidentsAnnotation, std::to_string(apply.incidents));
  } else {
    made.meta.annotations.emplace_back(kSameCardAnnotation, apply.same_card_as);
  }
  if (!apply.identity.empty()) made.meta.annotations.emplace_back(kIdentityAnnotation, apply.identity);
  made.meta.annotations.sort();  // as the decoders keep them
  made.has_selector = true;
  made.driver = apply.driver;
  made.pool = apply.pool;
  made.device = apply.device_name;
  made.taint = {std::string(kTaintKey), std::string(kRuleValue), apply.effect};
  ++made.generation;
  put(made);
}

void Stage::show(const taint::PatchNodeTaint& patch) {
  auto node = node_named(patch.node);
  if (strips_.node) return put(node);
  if (patch.add) {
    node.taints.push_back(node_taint());
  } else {
    node.taints.erase(node.taints.begin() + static_cast<std::ptrdiff_t>(patch.index));
  }
  put(node);
}

void Stage::tell_of_owner(const std::string& name, Status status, OwnerSight sight) {
  owners_[name] = {.action = {}, .status = std::move(status), .sight = std::move(sight)};
}

void Stage::answer(const Action& action, Status status) {
  Outcome outcome{.action = action, .status = std::move(status)};
  if (const auto* read = std::get_if<owners::ReadOwner>(&action); read != nullptr && outcome.status) {
    outcome.sight = OwnerSight{.state = OwnerSight::State::Found};
    if (const auto told = owners_.find(read->owner.name); told != owners_.end()) {
      outcome.status = told->second.status;
      outcome.sight = told->second.sight;
    }
  }
  waiting_.emplace_back(std::move(outcome));
}

void Stage::show(const Action& action) {
  if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) return show(*apply);
  if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) return show(*patch);
  if (const auto* told = std::get_if<hand_over::ApplyNodeConditions>(&action)) {
    auto node = node_named(told->node);
    node.kept = told->conditions;
    return put(node);
  }
  if (const auto* make = std::get_if<hand_over::MakeObject>(&action)) {
    handed_.emplace(title_of(make->object), make->text);
    return;
  }
  if (const auto* unmake = std::get_if<hand_over::RemoveObject>(&action)) {
    handed_.erase(title_of(unmake->object));
    return;
  }
  if (const auto* removal = std::get_if<taint::DeleteRule>(&action)) {
    return remove(k8s::Kind::DeviceTaintRule, removal->name);
  }
  if (const auto* state = std::get_if<incident_state::WriteState>(&action)) {
    return put(state_map(state->text, state->ns));
  }
  if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    auto& pod = pod_named(condition->name);
    pod.conditions.erase_if([](const k8s::Condition& other) { return other.type == kConditionType; });
    if (condition->wanted && !strips_.condition) {
      pod.conditions.push_back({.type = std::string(kConditionType),
                                .status = condition->wanted->status ? "True" : "False",
                                .reason = condition->wanted->reason,
                                .message = condition->wanted->message,
                                .last_transition = condition->wanted->last_transition});
    }
    show_notice(strips_.notice ? std::string() : condition->notice, pod);
    upsert_pod(condition->name);
  } else if (const auto* patch = std::get_if<job_retry::PatchJob>(&action)) {
    if (strips_.job) return upsert_job(patch->name);
    auto& job = job_named(patch->name);
    job.backoff_limit = patch->limit;
    for (const auto& note : patch->notes) {
      job.meta.annotations.erase_if([&](const auto& entry) { return entry.first == note.annotation; });
      job.meta.annotations.emplace_back(note.annotation, note.text);
    }
    job.meta.annotations.sort();
    job.meta.has_annotations = true;
    upsert_job(patch->name);
  } else if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    auto& pod = pod_named(evict->name);
    pod.meta.deletion_grace_seconds = evict->grace_period_seconds.value_or(*pod.grace_period_seconds);
    constexpr std::int64_t kDecade = 315'360'000;  // beyond it nothing is told apart
    pod.meta.deletion = now().wall + Seconds(std::clamp<std::int64_t>(*pod.meta.deletion_grace_seconds, 0, kDecade));
    pod.conditions.push_back({.type = std::string(kDisruptionTarget),
                              .status = "True",
                              .reason = std::string(kEvictedByApi),
                              .message = {},
                              .last_transition = now().wall});
    upsert_pod(evict->name);
  }
}

std::vector<std::string> Stage::settle() {
  std::vector<std::string> gone;
  for (int round = 0; round < 20; ++round) {
    const auto actions = turn();
    if (actions.empty() && waiting_.empty()) break;
    for (const auto& action : actions) {
      const auto* evict = std::get_if<eviction::EvictPod>(&action);
      const auto* make = std::get_if<hand_over::MakeObject>(&action);
      const Status status = evict != nullptr ? judge_(*evict) : make != nullptr ? judge_object_(*make) : Status{};
      answer(action, status);
      if (status && evict != nullptr) gone.push_back(evict->name);
      if (status && (evict == nullptr || shows_evictions_)) show(action);
      if (const auto* read = std::get_if<owners::ReadOwner>(&action)) reads_.push_back(*read);
    }
  }
  return gone;
}

std::vector<std::string> Stage::run_for(Millis time, Millis step) {
  std::vector<std::string> gone = settle();
  for (Millis passed{0}; passed < time; passed += step) {
    advance(std::min(step, time - passed));
    for (auto& name : settle()) gone.push_back(std::move(name));
  }
  return gone;
}

std::string Stage::reasons(const std::string& pod) const {
  std::string joined;
  for (const auto& verdict : verdicts()) {
    if (verdict.subject.name != pod) continue;
    if (!joined.empty()) joined += ' ';
    joined += to_string(verdict.reason);
  }
  return joined;
}

const Verdict* Stage::verdict(const std::string& subject, Reason reason) const {
  const auto found = std::ranges::find_if(
      verdicts(), [&](const Verdict& v) { return v.subject.name == subject && v.reason == reason; });
  return found == verdicts().end() ? nullptr : &*found;
}

bool Stage::has_event(const std::string& subject, std::string_view reason) const {
  return std::ranges::any_of(
      events_, [&](const notice::EmitEvent& e) { return e.regarding.name == subject && e.reason == reason; });
}

std::vector<std::string> evicted(const std::vector<Action>& actions) {
  std::vector<std::string> names;
  for (const auto& action : actions) {
    if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) names.push_back(evict->name);
  }
  return names;
}

}  // namespace dhc::test
