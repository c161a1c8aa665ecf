#include "app/record/other_past.h"

#include <algorithm>
#include <variant>

#include "base/rfc3339.h"
#include "domain/cluster/world.h"
#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/contract/state_names.h"

namespace dhc::record {

namespace {

/// What a program is commonly given to end, where its pod does not say.
constexpr std::int64_t kUsualGrace = 30;
/// Beyond it nothing is told apart.
constexpr std::int64_t kLongestGrace = 86'400;

bool is_ours(const k8s::Condition& condition) { return condition.type == kConditionType; }

void erase_note(k8s::StringMap& notes, std::string_view key) {
  notes.erase_if([&](const auto& note) { return note.first == key; });
}

void put_note(k8s::StringMap& notes, std::string_view key, const std::string& text) {
  erase_note(notes, key);
  notes.emplace_back(key, text);
  notes.sort();
}

/// What a pod holds, told apart from what others hold: plugin devices by node.
std::set<std::string> devices_of(const k8s::Pod& pod) {
  std::set<std::string> all;
  for (const auto& resource : pod.allocated) {
    const bool is_claimed = resource.name.starts_with("claim:");
    for (const auto& device : resource.devices)
      all.insert(is_claimed ? device.resource_id.str()
                            : pod.node_name + "/" + resource.name + "/" + device.resource_id);
  }
  return all;
}

}  // namespace

void OtherPast::put(k8s::Object object, std::vector<k8s::Delivery>& out) {
  std::visit([&](auto& one) { one.meta.resource_version = std::to_string(++version_); }, object);
  out.emplace_back(k8s::Upsert{std::move(object)});
}

void OtherPast::deliver(k8s::Delivery&& recorded, std::vector<k8s::Delivery>& out) {
  if (auto* upsert = std::get_if<k8s::Upsert>(&recorded)) {
    if (transform(upsert->object, out)) put(std::move(upsert->object), out);
    return;
  }
  if (auto* all = std::get_if<k8s::Snapshot>(&recorded)) return list(std::move(*all), out);
  if (const auto* gone = std::get_if<k8s::Remove>(&recorded)) {
    switch (gone->kind) {
      case k8s::Kind::Pod:
        if (frozen_.contains(gone->uid) || ending_.contains(gone->uid) || ended_.contains(gone->uid)) return;
        pods_.erase(gone->uid);
        written_.erase(gone->uid);
        break;
      case k8s::Kind::ResourceClaim:
        if (const auto owner = claims_.find(gone->uid); owner != claims_.end()) {
          if (frozen_.contains(owner->second)) return;
          claims_.erase(owner);
        }
        break;
      case k8s::Kind::Node:
        nodes_.erase(gone->name);
        tainted_.erase(gone->name);
        break;
      case k8s::Kind::Job:
        jobs_.erase(gone->uid);
        break;
      case k8s::Kind::DeviceTaintRule:
        if (their_rules_.erase(gone->uid) > 0) return;
        break;
      case k8s::Kind::ConfigMap:
        return;
      default:
        break;
    }
  }
  out.push_back(std::move(recorded));
}

/// False: it is not there.
bool OtherPast::transform(k8s::Object& object, std::vector<k8s::Delivery>& out) {
  if (auto* pod = std::get_if<k8s::Pod>(&object)) return transform(*pod, out);
  if (auto* node = std::get_if<k8s::Node>(&object)) {
    transform(*node);
  } else if (auto* job = std::get_if<k8s::Job>(&object)) {
    transform(*job);
  } else if (const auto* claim = std::get_if<k8s::ResourceClaim>(&object)) {
    const auto& owner = claim->meta.controller;
    if (owner && owner->kind == "Pod") claims_.insert_or_assign(claim->meta.uid, owner->uid);
  } else if (const auto* rule = std::get_if<k8s::DeviceTaintRule>(&object)) {
    if (!is_our_rule(*rule)) return true;
    their_rules_.insert(rule->meta.uid);
    return false;
  } else if (std::holds_alternative<k8s::ConfigMap>(object)) {
    return !has_state_;
  }
  return true;
}

bool OtherPast::transform(k8s::Pod& pod, std::vector<k8s::Delivery>& out) {
  const auto uid = pod.meta.uid;
  if (frozen_.contains(uid) || ended_.contains(uid) || ending_.contains(uid)) return false;
  pod.conditions.erase_if(is_ours);
  erase_note(pod.meta.annotations, kNoticeAnnotation);
  if (!k8s::asks_for_devices(pod)) return true;
  pods_.insert_or_assign(uid, pod);
  make_room(pod, out);
  pod = shown(pod);
  return true;
}

/// What the recorded one's eviction set free is taken again: whoever would have held it then is gone.
void OtherPast::make_room(const k8s::Pod& pod, std::vector<k8s::Delivery>& out) {
  if (frozen_.empty() || pod.allocated.empty() || !is_live(pod)) return;
  const auto taken = devices_of(pod);
  std::vector<std::string> leave;
  for (const auto& uid : frozen_) {
    const auto held = devices_of(pods_.at(uid));
    if (std::ranges::any_of(held, [&](const auto& device) { return taken.contains(device); })) leave.push_back(uid);
  }
  for (const auto& uid : leave) end_pod(uid, out);
}

k8s::Pod OtherPast::shown(const k8s::Pod& pod) const {
  auto copy = pod;
  if (const auto found = written_.find(pod.meta.uid); found != written_.end()) {
    if (found->second.condition) copy.conditions.push_back(*found->second.condition);
    if (!found->second.notice.empty()) {
      put_note(copy.meta.annotations, kNoticeAnnotation, found->second.notice);
      copy.meta.has_annotations = true;
    }
  }
  copy.has_kept_condition =
      std::ranges::any_of(copy.conditions, [](const k8s::Condition& one) { return kKeptFields.contains(one.type); });
  return copy;
}

void OtherPast::transform(k8s::Node& node) {
  std::erase_if(node.taints, [](const k8s::Taint& taint) { return taint.key == kTaintKey; });
  nodes_.insert_or_assign(node.meta.name, node);
  if (tainted_.contains(node.meta.name)) node.taints.push_back(node_taint());
}

void OtherPast::transform(k8s::Job& job) {
  if (const auto then = credited_then_.find(job.meta.uid); then != credited_then_.end())
    job.backoff_limit -= then->second;
  erase_note(job.meta.annotations, kRetryCreditsAnnotation);
  erase_note(job.meta.annotations, kLossesAnnotation);
  jobs_.insert_or_assign(job.meta.uid, job);
  add_credits(job);
}

void OtherPast::add_credits(k8s::Job& job) const {
  const auto mine = credits_.find(job.meta.uid);
  if (mine == credits_.end()) return;
  job.backoff_limit += mine->second.by;
  for (const auto& [key, text] : mine->second.notes) put_note(job.meta.annotations, key, text);
  job.meta.has_annotations = true;
}

void OtherPast::list(k8s::Snapshot&& list, std::vector<k8s::Delivery>& out) {
  const auto kind = list.kind;
  std::vector<k8s::Delivery> after;
  std::erase_if(list.objects, [&](k8s::Object& object) {
    if (!transform(object, after)) return true;
    std::visit([&](auto& one) { one.meta.resource_version = std::to_string(++version_); }, object);
    return false;
  });
  if (kind == k8s::Kind::Pod) {
    std::set<std::string> there;
    for (const auto& object : list.objects) there.insert(k8s::meta_of(object).uid);
    std::erase_if(pods_, [&](const auto& entry) {
      const auto& uid = entry.first;
      return !there.contains(uid) && !frozen_.contains(uid) && !ending_.contains(uid);
    });
    for (const auto& uid : frozen_) list.objects.emplace_back(shown(pods_.at(uid)));
    for (const auto& [uid, pod] : going_) list.objects.emplace_back(pod);
  } else if (kind == k8s::Kind::DeviceTaintRule) {
    for (const auto& [name, rule] : rules_) list.objects.emplace_back(rule);
  } else if (kind == k8s::Kind::ConfigMap) {
    // Once: what is remembered later is the new one's own.
    if (std::exchange(has_state_, true)) return;
  }
  out.emplace_back(std::move(list));
  for (auto& one : after) out.push_back(std::move(one));
}

void OtherPast::evicted_then(const std::string& uid) {
  if (pods_.contains(uid) && !ending_.contains(uid)) frozen_.insert(uid);
}

void OtherPast::credited_then(const std::string& uid, std::int64_t by) { credited_then_[uid] += by; }

void OtherPast::show(const Action& action, const Now& now, std::vector<k8s::Delivery>& out) {
  if (const auto* condition = std::get_if<notice::ApplyCondition>(&action)) {
    const auto pod = pods_.find(condition->uid);
    if (pod == pods_.end()) return;
    auto& written = written_[condition->uid];
    written.condition.reset();
    if (const auto& wanted = condition->wanted) {
      written.condition = k8s::Condition{.type = std::string(kConditionType),
                                         .status = wanted->status ? "True" : "False",
                                         .reason = wanted->reason,
                                         .message = wanted->message,
                                         .last_transition = wanted->last_transition};
    }
    written.notice = condition->notice;
    if (const auto going = going_.find(condition->uid); going == going_.end()) put(shown(pod->second), out);
  } else if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    const auto pod = pods_.find(evict->uid);
    if (pod == pods_.end()) return;
    auto going = shown(pod->second);
    const auto grace = std::clamp<std::int64_t>(
        evict->grace_period_seconds.value_or(going.grace_period_seconds.value_or(kUsualGrace)), 0, kLongestGrace);
    going.meta.deletion = now.wall + Seconds(grace);
    going.meta.deletion_grace_seconds = grace;
    going.conditions.push_back({.type = std::string(kDisruptionTarget),
                                .status = "True",
                                .reason = std::string(kEvictedByApi),
                                .message = {},
                                .last_transition = now.wall});
    frozen_.erase(evict->uid);
    ending_.insert_or_assign(evict->uid, now.mono + Seconds(grace));
    going_.insert_or_assign(evict->uid, going);
    put(std::move(going), out);
  } else if (const auto* apply = std::get_if<taint::ApplyRule>(&action)) {
    auto& rule = rules_[apply->name];
    if (rule.meta.uid.empty()) {
      rule.meta.uid = "replay-" + apply->name + "-" + std::to_string(++version_);
      rule.meta.creation = now.wall;
    }
    rule.meta.name = apply->name;
    rule.meta.labels = {{std::string(kManagedByLabel), std::string(kManagedBy)}};
    rule.meta.annotations.clear();
    put_note(rule.meta.annotations, kEffectAnnotation, apply->effect);
    if (apply->same_card_as.empty()) {
      put_note(rule.meta.annotations, kIncidentsAnnotation, std::to_string(apply->incidents));
    } else {
      put_note(rule.meta.annotations, kSameCardAnnotation, apply->same_card_as);
    }
    put_note(rule.meta.annotations, kPolicyAnnotation, apply->policy);
    put_note(rule.meta.annotations, kSinceAnnotation, format_rfc3339(apply->since));
    if (!apply->identity.empty()) put_note(rule.meta.annotations, kIdentityAnnotation, apply->identity);
    if (!apply->identity_attribute.empty())
      put_note(rule.meta.annotations, kIdentityAttributeAnnotation, apply->identity_attribute);
    rule.meta.has_annotations = true;
    rule.has_selector = true;
    rule.driver = apply->driver;
    rule.pool = apply->pool;
    rule.device = apply->device_name;
    rule.taint = {std::string(kTaintKey), std::string(kRuleValue), apply->effect, {}};
    ++rule.generation;
    rule.meta.resource_version = std::to_string(++version_);
    out.emplace_back(k8s::Upsert{rule});
  } else if (const auto* removal = std::get_if<taint::DeleteRule>(&action)) {
    const auto rule = rules_.find(removal->name);
    if (rule == rules_.end()) return;
    out.emplace_back(
        k8s::Remove{.kind = k8s::Kind::DeviceTaintRule, .ns = {}, .name = removal->name, .uid = rule->second.meta.uid});
    rules_.erase(rule);
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action)) {
    patch->add ? (void)tainted_.insert(patch->node) : (void)tainted_.erase(patch->node);
    const auto node = nodes_.find(patch->node);
    if (node == nodes_.end()) return;
    auto copy = node->second;
    transform(copy);
    put(std::move(copy), out);
  } else if (const auto* credit = std::get_if<job_retry::PatchJob>(&action)) {
    auto& mine = credits_[credit->uid];
    mine.by += credit->limit - credit->limit_before;
    for (const auto& note : credit->notes) put_note(mine.notes, note.annotation, note.text);
    const auto job = jobs_.find(credit->uid);
    if (job == jobs_.end()) return;
    auto copy = job->second;
    add_credits(copy);
    put(std::move(copy), out);
  }
}

void OtherPast::end_pod(const std::string& uid, std::vector<k8s::Delivery>& out) {
  const auto pod = pods_.find(uid);
  if (pod != pods_.end()) {
    out.emplace_back(
        k8s::Remove{.kind = k8s::Kind::Pod, .ns = pod->second.meta.ns, .name = pod->second.meta.name, .uid = uid});
    pods_.erase(pod);
  }
  frozen_.erase(uid);
  ending_.erase(uid);
  going_.erase(uid);
  written_.erase(uid);
  ended_.insert(uid);
}

void OtherPast::pass(const Now& now, std::vector<k8s::Delivery>& out) {
  std::vector<std::string> over;
  for (const auto& [uid, at] : ending_) {
    if (at <= now.mono) over.push_back(uid);
  }
  for (const auto& uid : over) end_pod(uid, out);
}

std::optional<MonoTime> OtherPast::next_end() const {
  std::optional<MonoTime> next;
  for (const auto& [uid, at] : ending_) next = std::min(next.value_or(at), at);
  return next;
}

}  // namespace dhc::record
