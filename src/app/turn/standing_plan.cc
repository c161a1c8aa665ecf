#include "app/turn/standing_plan.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <tuple>

#include "domain/cluster/gang.h"
#include "domain/cluster/owner_chain.h"
#include "domain/findings/rejecting_node.h"

namespace dhc {

namespace {

/// The message as well: of a node that is handed over in two ways both may be held for one reason.
auto place_of(const Verdict& verdict) {
  return std::tie(verdict.subject, verdict.device, verdict.reason, verdict.message);
}

/// With more changes than these sorting costs less than putting each in its place.
constexpr std::size_t kFewChanges = 64;

const std::set<DeviceKey>* find(const std::map<std::string, std::set<DeviceKey>, std::less<>>& index,
                                std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &found->second;
}

bool is_job(const k8s::Pod& pod) { return pod.meta.controller && pod.meta.controller->kind == "Job"; }

bool asks_about_owner(const Verdict& verdict) {
  return verdict.reason == Reason::OptOutUnknown || verdict.reason == Reason::OptedOut;
}

/// Whether an answer that both have is another.
template <class Answers>
bool differ(const Answers& a, const Answers& b) {
  return std::ranges::any_of(a, [&](const auto& entry) {
    const auto other = b.find(entry.first);
    return other != b.end() && other->second != entry.second;
  });
}

/// What stands on a node in one of both, and not in the other.
std::set<std::string> changed_keys(const std::map<std::string, std::string>& a,
                                   const std::map<std::string, std::string>& b) {
  std::set<std::string> changed;
  for (const auto* one : {&a, &b}) {
    for (const auto& [name, words] : *one) {
      const auto& other = one == &a ? b : a;
      const auto found = other.find(name);
      if (found == other.end() || found->second != words) changed.insert(name);
    }
  }
  return changed;
}

}  // namespace

/// Adds to a focus with each device all that hangs together with it: its pods and their other devices, the other
/// holders of their claims, the pods of their Jobs and gangs, and the devices on their nodes.
class StandingPlan::Expansion {
 public:
  Expansion(const StandingPlan& plan, const World& world, Focus& focus) : plan_(plan), world_(world), focus_(focus) {}

  void add(const DeviceKey& key) {
    if (focus_.devices.insert(key).second) to_do_.push_back(key);
  }
  void add(const std::set<DeviceKey>* keys) {
    if (keys == nullptr) return;
    for (const auto& key : *keys) add(key);
  }

  void add_touched_pod(const std::string& uid) {
    if (const auto* record = world_.pod(uid)) {
      for (const auto& held_device : record->held_devices) add(held_device.key);
    }
    add_pod(uid);
  }

  void add_node(const std::string& name) {
    if (!focus_.nodes.insert(name).second) return;
    add(find(plan_.by_node_, name));
  }

  void add_touched_node(const std::string& name) {
    add_node(name);
    for (const auto& uid : world_.pods_on(name)) {
      for (const auto& held_device : world_.pod(uid)->held_devices) {
        if (matters(held_device.key)) add(held_device.key);
      }
    }
  }

  void add_pool(const std::pair<std::string, std::string>& name) {
    auto part = plan_.parts_.lower_bound(DeviceKey::dra(name.first, name.second, {}));
    for (; part != plan_.parts_.end() && part->first.scope == name.first && part->first.place == name.second; ++part)
      add(part->first);
    const auto found = world_.inventory().pools().find(name);
    if (found == world_.inventory().pools().end()) return;
    for (const auto& [device, published] : found->second.devices) {
      auto key = DeviceKey::dra(name.first, name.second, device);
      if (world_.tracker().find(key) != nullptr) add(key);
    }
  }

  void run() {
    while (!to_do_.empty()) {
      const auto key = std::move(to_do_.back());
      to_do_.pop_back();
      if (const auto part = plan_.parts_.find(key); part != plan_.parts_.end()) {
        for (const auto& uid : part->second.links.pods) add_pod(uid);
        for (const auto& name : part->second.links.nodes) add_node(name);
        if (part->second.rests && part->second.rests->takes) {
          for (const auto& owner : part->second.links.owners) add(find(plan_.by_owner_, owner));
        }
      }
      if (const auto* state = world_.tracker().find(key)) {
        for (const auto& uid : state->holders) add_pod(uid);
      }
      if (const auto node = world_.node_of(key); !node.empty()) add_node(node);
    }
  }

 private:
  [[nodiscard]] bool matters(const DeviceKey& key) const {
    return plan_.parts_.contains(key) || world_.tracker().not_healthy().contains(key) ||
           world_.driver_taints().is_tainted(key);
  }

  void add_pod(const std::string& uid) {
    if (!focus_.pods.insert(uid).second) return;
    add(find(plan_.by_pod_, uid));
    const auto* record = world_.pod(uid);
    if (record == nullptr) return;
    for (const auto& held_device : record->held_devices) {
      if (matters(held_device.key)) add(held_device.key);
      for (const auto& candidate : held_device.candidates) add(candidate);
    }
    const auto& pod = record->pod;
    if (!pod.node_name.empty()) add_node(pod.node_name);
    for (const auto& claim : pod.claims) {
      for (const auto& other : world_.users_of(claim_key(pod.meta.ns, claim.claim_name))) add_pod(other);
    }
    if (is_job(pod)) add(find(plan_.by_owner_, pod.meta.controller_identity()));
    if (const auto gang = gang_of(pod)) add(find(plan_.by_gang_, gang->key));
  }

  const StandingPlan& plan_;
  const World& world_;
  Focus& focus_;
  std::vector<DeviceKey> to_do_;
};

Focus StandingPlan::focus_on(const Touched& touched, const World& world, const Now& now) const {
  Focus focus;
  focus.all = touched.all();
  if (focus.all) return focus;
  Expansion expansion(*this, world, focus);
  for (const auto& key : touched.devices()) expansion.add(key);
  for (const auto& uid : touched.pods()) expansion.add_touched_pod(uid);
  for (const auto& uid : pods_again_) expansion.add_touched_pod(uid);
  for (const auto& name : touched.nodes()) expansion.add_touched_node(name);
  for (const auto& owner : touched.owners()) expansion.add(find(by_owner_, owner));
  for (const auto& name : touched.namespaces()) expansion.add(find(by_namespace_, name));
  for (const auto& name : touched.pools()) expansion.add_pool(name);
  for (const auto& key : again_) expansion.add(key);
  for (const auto& key : wakes_.due(now.mono)) expansion.add(key);
  expansion.run();
  return focus;
}

void StandingPlan::touch_views(KindSet changed, Touched& touched) const {
  if (other_views_.meets(changed)) return touched.everything();
  for (const auto& [key, part] : parts_) {
    if (part.views.meets(changed)) touched.device(key);
  }
}

void StandingPlan::add_scope(Focus& focus, const std::string& scope, const World& world) const {
  if (focus.all) return;
  Expansion expansion(*this, world, focus);
  for (const auto& [key, part] : parts_) {
    if (key.scope == scope) expansion.add(key);
  }
  expansion.run();
}

bool StandingPlan::add_changed(Focus& focus, const eviction::Plan& plan, const World& world) const {
  if (focus.all) return false;
  const auto known = focus.devices.size();
  const auto& before = plan.before;
  const auto& after = plan.after;
  const bool all_limits = differ(answers_.limits, before.limits) || differ(before.limits, after.limits);
  const bool all_places = differ(answers_.places, before.places) || differ(before.places, after.places) ||
                          answers_.waiting != before.waiting || before.waiting != after.waiting;
  auto nodes = changed_keys(before.taken, after.taken);
  nodes.merge(changed_keys(answers_.taken, before.taken));
  Expansion expansion(*this, world, focus);
  const bool is_same = !all_limits && !all_places && nodes.empty();
  for (const auto& key : is_same ? std::set<DeviceKey>() : resting_) {
    const auto& part = parts_.at(key);
    const auto& rests = *part.rests;
    const bool has_changed_node = rests.on_own_node && std::ranges::any_of(part.links.nodes, [&](const auto& name) {
                                    return nodes.contains(name);
                                  });
    if ((rests.on_limits && all_limits) || (rests.on_place && all_places) || has_changed_node) expansion.add(key);
  }
  // Whoever takes a share leaves less to those on its node, who are in focus, and of its owner.
  for (const auto& [key, rests] : plan.rests) {
    if (!rests.takes) continue;
    const auto* state = world.tracker().find(key);
    if (state == nullptr) continue;
    for (const auto& uid : state->holders) {
      const auto* record = world.pod(uid);
      if (record != nullptr && record->pod.meta.controller)
        expansion.add(find(by_owner_, record->pod.meta.controller_identity()));
    }
  }
  expansion.run();
  return focus.devices.size() != known;
}

eviction::CommonQuestions StandingPlan::questions(const Focus& focus) const {
  eviction::CommonQuestions questions;
  if (focus.all) return questions;
  // Whoever is decided about anew asks for himself, if he still asks.
  auto limited = limited_;
  auto looking = looking_;
  for (const auto& key : focus.devices) {
    const auto part = parts_.find(key);
    if (part == parts_.end() || !part->second.rests) continue;
    const auto& rests = *part->second.rests;
    if (rests.on_limits) --limited[key.scope];
    if (rests.on_place) --looking[*rests.on_place];
  }
  for (const auto& [scope, count] : limited) {
    if (count > 0) questions.scopes.insert(scope);
  }
  for (const auto& [demand, count] : looking) {
    if (count > 0) questions.places.insert(demand);
  }
  return questions;
}

std::vector<Verdict> StandingPlan::about_owners(const Focus& focus) const {
  std::vector<Verdict> found;
  if (focus.all) return found;
  for (const auto& key : asking_) {
    if (focus.devices.contains(key)) continue;
    std::ranges::copy_if(parts_.at(key).verdicts, std::back_inserter(found), asks_about_owner);
  }
  return found;
}

StandingPlan::Links StandingPlan::links_of(const DeviceKey& key, const World& world, const Brake& brake) {
  Links links;
  if (auto node = world.node_of(key); !node.empty()) links.nodes.insert(std::move(node));
  // A driver that publishes the device no longer says no more where it is.
  if (const auto bad = brake.bad().find(key); bad != brake.bad().end() && !bad->second.node.empty())
    links.nodes.insert(bad->second.node);
  const auto* state = world.tracker().find(key);
  if (state == nullptr) return links;
  for (const auto& uid : state->holders) {
    const auto* record = world.pod(uid);
    if (record == nullptr) continue;
    const auto& pod = record->pod;
    links.pods.insert(uid);
    if (!pod.node_name.empty()) links.nodes.insert(pod.node_name);
    links.namespaces.insert(pod.meta.ns);
    if (auto gang = gang_of(pod)) links.gangs.insert(std::move(gang->key));
    const auto* meta = &pod.meta;
    for (int i = 0; meta != nullptr && meta->controller && i < kMostOwners; ++i) {
      const auto& owner = *meta->controller;
      links.owners.insert(meta->controller_identity());
      const auto* sight = world.owner_sights().find(pod.meta.ns, owner);
      const auto* above = world.owner(pod.meta.ns, owner.uid);
      meta = above != nullptr ? above : sight != nullptr ? &sight->meta : nullptr;
    }
  }
  return links;
}

void StandingPlan::index(const DeviceKey& key, const Part& part, bool is_in) {
  const auto note = [is_in](auto& keys, const auto& entry, bool has) {
    if (has) (void)(is_in ? keys.insert(entry).second : keys.erase(entry) > 0);
  };
  const auto count = [is_in](auto& counts, const auto& name) {
    auto& number = counts[name];
    number += is_in ? 1 : -1;
    if (number == 0) counts.erase(name);
  };
  note(again_, key, part.again);
  if (part.wake_at) is_in ? wakes_.set(key, *part.wake_at) : wakes_.erase(key);
  note(asking_, key, std::ranges::any_of(part.verdicts, asks_about_owner));
  if (!part.rests) return;
  const auto& rests = *part.rests;
  note(resting_, key, rests.on_limits || rests.on_place || rests.on_own_node);
  if (rests.on_limits) count(limited_, key.scope);
  if (rests.on_place) count(looking_, *rests.on_place);
}

void StandingPlan::link(const DeviceKey& key, const Links& links, bool is_in) {
  const auto note = [&](Index& index, const std::set<std::string>& names) {
    for (const auto& name : names) {
      if (is_in) {
        index[name].insert(key);
      } else if (const auto found = index.find(name); found != index.end()) {
        found->second.erase(key);
        if (found->second.empty()) index.erase(found);
      }
    }
  };
  note(by_pod_, links.pods);
  note(by_node_, links.nodes);
  note(by_owner_, links.owners);
  note(by_namespace_, links.namespaces);
  note(by_gang_, links.gangs);
}

void StandingPlan::say(Verdict verdict) {
  const auto at = std::ranges::upper_bound(sorted_, place_of(verdict), {}, place_of);
  sorted_.insert(at, std::move(verdict));
}

void StandingPlan::unsay(const Verdict& verdict) {
  const auto same = std::ranges::equal_range(sorted_, place_of(verdict), {}, place_of);
  const auto found = std::ranges::find(same, verdict);
  if (found != same.end()) sorted_.erase(found);
}

void StandingPlan::sort() {
  sorted_ = others_;
  sorted_.insert(sorted_.end(), last_.begin(), last_.end());
  for (const auto& [key, part] : parts_) sorted_.insert(sorted_.end(), part.verdicts.begin(), part.verdicts.end());
  std::ranges::sort(sorted_, {}, place_of);
}

void StandingPlan::replace(const Focus& focus, Decided decided, const eviction::Plan& evictions,
                           const std::vector<const AffectedPod*>& in_focus, const ViewsAsked& views, const World& world,
                           const IncidentStore& incidents, const Brake& brake) {
  std::set<DeviceKey> keys = focus.devices;
  if (focus.all) {
    for (const auto& [key, part] : parts_) keys.insert(key);
    for (const auto& [key, record] : incidents.records()) keys.insert(key);
    for (const auto& [key, bad] : brake.bad()) keys.insert(key);
    for (const auto* affected : in_focus) keys.insert(affected->key);
    for (const auto& [key, verdicts] : decided.verdicts) keys.insert(key);
    for (const auto& [key, at] : decided.wakes) keys.insert(key);
    keys.insert(decided.again.begin(), decided.again.end());
  }
  if (focus.all) other_views_ = {};
  for (const auto& [key, kinds] : views) {
    if (!keys.contains(key)) other_views_ |= kinds;
  }
  // Of those who were asked some may have been answered before others took their shares.
  const bool is_mixed = evictions.took || differ(evictions.before.limits, evictions.after.limits);
  std::set<DeviceKey> affected_devices;
  for (const auto* affected : in_focus) affected_devices.insert(affected->key);
  std::vector<Verdict> begun;
  std::vector<Verdict> ended;
  const auto compare = [&](const std::vector<Verdict>& old, const std::vector<Verdict>& fresh) {
    if (old == fresh) return;
    for (const auto& verdict : old) {
      if (std::ranges::find(fresh, verdict) == fresh.end()) ended.push_back(verdict);
    }
    for (const auto& verdict : fresh) {
      if (std::ranges::find(old, verdict) == old.end()) begun.push_back(verdict);
    }
  };
  // A node that is handed over in two ways may be held twice for one reason, in the same words: that is said once.
  const auto in_full = [](const Verdict& one) {
    return std::tuple_cat(place_of(one), std::tie(one.since, one.next_at, one.policy, one.mode));
  };
  std::ranges::sort(decided.others, {}, in_full);
  const auto repeated = std::ranges::unique(decided.others);
  decided.others.erase(repeated.begin(), repeated.end());
  compare(others_, decided.others);
  others_ = std::move(decided.others);
  for (const auto& key : keys) {
    Part part;
    if (const auto found = decided.verdicts.find(key); found != decided.verdicts.end())
      part.verdicts = std::move(found->second);
    if (const auto found = decided.wakes.find(key); found != decided.wakes.end()) part.wake_at = found->second;
    if (const auto found = evictions.rests.find(key); found != evictions.rests.end()) part.rests = found->second;
    const bool rests = part.rests && (part.rests->on_limits || part.rests->on_place);
    part.again = decided.again.contains(key) || !key.is_device() || (is_mixed && rests);
    const auto known = parts_.find(key);
    compare(known == parts_.end() ? std::vector<Verdict>() : known->second.verdicts, part.verdicts);
    if (const auto found = views.find(key); found != views.end()) part.views = found->second;
    const bool is_kept = !part.verdicts.empty() || part.wake_at || part.rests || part.again || !part.views.empty() ||
                         affected_devices.contains(key) || incidents.find(key) != nullptr || brake.bad().contains(key);
    if (is_kept) part.links = links_of(key, world, brake);
    // Most are found by the same as before.
    const bool is_same = known != parts_.end() && is_kept && known->second.links == part.links;
    if (known != parts_.end()) {
      index(key, known->second, false);
      if (!is_same) link(key, known->second.links, false);
    }
    if (!is_kept) {
      if (known != parts_.end()) parts_.erase(known);
      continue;
    }
    index(key, part, true);
    if (!is_same) link(key, part.links, true);
    parts_.insert_or_assign(key, std::move(part));
  }
  pods_again_ = std::move(decided.pods_again);
  answers_ = evictions.after;
  if (begun.size() + ended.size() > kFewChanges) return sort();
  for (const auto& verdict : ended) unsay(verdict);
  for (auto& verdict : begun) say(std::move(verdict));
}

void StandingPlan::replace_last(std::vector<Verdict> verdicts) {
  for (const auto& verdict : last_) unsay(verdict);
  last_ = std::move(verdicts);
  for (const auto& verdict : last_) say(verdict);
}

}  // namespace dhc
