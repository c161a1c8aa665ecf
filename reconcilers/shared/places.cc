#include "reconcilers/shared/places.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "domain/findings/match_device.h"

namespace dhc {

namespace {

std::int64_t unhealthy_held(const k8s::Pod& pod, const std::string& resource) {
  const auto entry = std::ranges::find(pod.allocated, resource, &k8s::AllocatedResource::name);
  return entry == pod.allocated.end()
             ? 0
             : std::ranges::count(entry->devices, k8s::Health::Unhealthy, &k8s::ReportedDevice::health);
}

}  // namespace

Places::Places(const PlanInput& input, const ComingPods& coming, const std::optional<std::string>& ns)
    : input_(input), coming_(coming) {
  for (const auto& uid : input.world.terminating()) {
    const auto& pod = input.world.pod(uid)->pod;
    if (is_live(pod)) ending_on_[pod.node_name].push_back(&pod);
  }
  std::vector<const k8s::Pod*> leaving;
  for (const auto& uid : coming.leaving()) leaving.push_back(&input.world.pod(uid)->pod);
  give_back(released_by(leaving));
  for (const auto& next : coming.list(input.world, input.now)) {
    const bool waits = !next.uid.empty();
    if (waits && ns && next.ns != *ns) continue;
    if (waits) waiting_in_.insert(next.ns);
    if (!settle(*next.demand)) {
      ++waiting_[*next.demand];
    } else if (waits) {
      offered_.insert(next.uid);
    }
  }
}

/// Takes a place for the demand, if there is one.
bool Places::settle(const Demand& demand) {
  std::string why;
  std::vector<DeviceKey> picked;
  const auto* node = search(demand, {}, why, picked);
  if (node == nullptr) return false;
  occupy(*node, demand, picked);
  return true;
}

/// Whether the demand finds its place on a node where something is given back, after those who wait for just that.
bool Places::is_left_on(const k8s::Node& node, const Demand& demand, const Released& released,
                        const std::string& suspect) {
  std::vector<DeviceKey> picked;
  if (!fits(node, demand, released, suspect, picked)) return false;
  if (waiting_.empty()) return true;
  const auto taken = taken_;
  const auto taken_devices = taken_devices_;
  bool is_left = true;
  for (auto wanted = waiting_.begin(); is_left && wanted != waiting_.end(); ++wanted) {
    for (auto count = wanted->second; is_left && count > 0 && fits(node, wanted->first, released, {}, picked);
         --count) {
      occupy(node, wanted->first, picked);
      is_left = fits(node, demand, released, suspect, picked);
    }
  }
  taken_ = taken;
  taken_devices_ = taken_devices;
  return is_left;
}

std::expected<std::string, std::string> Places::find(std::span<const k8s::Pod* const> pods,
                                                     const std::string& suspect) {
  auto found = find_among_all(pods, suspect);
  if (found || pods.empty()) return found;
  const auto& ns = pods.front()->meta.ns;
  if (std::ranges::all_of(waiting_in_, [&](const auto& waiting) { return waiting == ns; })) return found;
  // Where there would be no room without anybody who waits, one look answers for every namespace.
  if (!without_others({}).find_among_all(pods, suspect)) return found;
  auto alone = without_others(ns).find_among_all(pods, suspect);
  if (!alone) return found;
  for (const auto* pod : pods) crowded_.insert(pod->meta.uid);
  const auto is_past = [&](const auto* pod) { return coming_.is_past_others(pod->meta.uid, input_.now); };
  return std::ranges::all_of(pods, is_past) ? alone : found;
}

/// The places as they were if no pod of another namespace waited.
Places& Places::without_others(const std::string& ns) {
  auto& alone = alone_[ns];
  if (alone == nullptr) {
    alone = std::make_unique<Places>(input_, coming_, ns);
    for (const auto& pods : evicted_) alone->take(pods);
  }
  return *alone;
}

std::expected<std::string, std::string> Places::find_among_all(std::span<const k8s::Pod* const> pods,
                                                               const std::string& suspect) {
  const auto demand = demand_of(pods, input_.world);
  const auto released = released_by(pods);
  std::set<std::string> own;
  for (const auto* pod : pods) own.insert(pod->node_name);
  for (const auto& name : own) {
    const auto* node = input_.world.node(name);
    if (node != nullptr && is_left_on(*node, demand, released, suspect)) return name;
  }
  std::string why;
  std::vector<DeviceKey> picked;
  const auto* node = search(demand, suspect, why, picked);
  if (node == nullptr) return std::unexpected(why);
  return node->meta.name;
}

std::string Places::why_not(const Demand& demand) {
  std::string why;
  std::vector<DeviceKey> picked;
  return search(demand, {}, why, picked) == nullptr ? why : std::string();
}

std::map<std::string, std::string> Places::taken() const {
  std::map<std::string, std::string> words;
  for (const auto& [what, amount] : taken_) words[what.first] += fmt::format("{} {};", amount, what.second);
  for (const auto& key : taken_devices_) words[input_.world.node_of(key)] += dhc::to_string(key) + ";";
  return words;
}

std::string Places::waiting() const {
  std::string words;
  for (const auto& [demand, count] : waiting_) words += fmt::format("{} {};", count, dhc::to_string(demand));
  return words;
}

void Places::take(std::span<const k8s::Pod* const> pods) {
  evicted_.emplace_back(pods.begin(), pods.end());
  for (auto& [ns, alone] : alone_) alone->take(pods);
  const auto demand = demand_of(pods, input_.world);
  give_back(released_by(pods));
  for (auto& [wanted, count] : waiting_) {
    while (count > 0 && settle(wanted)) --count;
  }
  std::erase_if(waiting_, [](const auto& entry) { return entry.second == 0; });
  if (!settle(demand)) ++waiting_[demand];
}

void Places::give_back(const Released& released) {
  std::set<std::string> nodes;
  for (const auto& uid : released.pods) {
    const auto& pod = input_.world.pod(uid)->pod;
    const auto& node = pod.node_name;
    nodes.insert(node);
    const bool is_new = gone_.pods.insert(uid).second;
    if (is_new && is_live(pod) && !pod.meta.deletion) gone_on_[node].push_back(&pod);
    const auto first = free_.lower_bound({node, std::string()});
    free_.erase(first, std::find_if(first, free_.end(), [&](const auto& entry) { return entry.first.first != node; }));
  }
  for (const auto& key : released.devices) nodes.insert(input_.world.node_of(key));
  gone_.devices.insert(released.devices.begin(), released.devices.end());
  given_back_on_.insert(nodes.begin(), nodes.end());
  // A network-attached device may be used from every node.
  if (nodes.contains("")) return searches_.clear();
  for (auto& [what, search] : searches_) {
    for (const auto& node : nodes) {
      if (search.why_none || node < search.next) search.again.insert(node);
    }
  }
}

void Places::occupy(const k8s::Node& node, const Demand& demand, const std::vector<DeviceKey>& picked) {
  for (const auto& [resource, amount] : demand.resources) taken_[{node.meta.name, resource}] += amount;
  taken_devices_.insert(picked.begin(), picked.end());
}

Places::Released Places::released_by(std::span<const k8s::Pod* const> pods) const {
  Released released;
  for (const auto* pod : pods) released.pods.insert(pod->meta.uid);
  const auto stays = [&](const std::string& uid) {
    return is_live(input_.world.pod(uid)->pod) && !released.pods.contains(uid) && !gone_.pods.contains(uid);
  };
  for (const auto* pod : pods) {
    for (const auto& named : pod->claims) {
      const auto key = claim_key(pod->meta.ns, named.claim_name);
      const auto* claim = named.claim_name.empty() ? nullptr : input_.world.claim(key);
      if (claim == nullptr || std::ranges::any_of(input_.world.users_of(key), stays)) continue;
      for (const auto& result : claim->results) {
        if (!result.admin_access) released.devices.insert(DeviceKey::dra(result.driver, result.pool, result.device));
      }
    }
  }
  return released;
}

/// Those of which some have what is asked for, of one thing that is; null: any node may.
const Room::Nodes* Places::candidates(const Demand& demand) const {
  if (input_.looks_everywhere) return nullptr;
  const auto& room = input_.world.room();
  for (const auto& [kind, count] : demand.devices) {
    if (count > 0 && !room.is_everywhere(kind.driver)) return &room.with_devices_of(kind.driver);
  }
  for (const auto& [resource, amount] : demand.resources) {
    if (amount > 0) return &room.with_resource(resource);
  }
  return nullptr;
}

/// The first of them from here on, or of those where something is given back.
Places::NodeEntry Places::candidate(const Room::Nodes* among, NodeEntry from) const {
  const auto& nodes = input_.world.nodes();
  if (among == nullptr) return from;
  while (from != nodes.end()) {
    const auto& name = from->first;
    if (among->contains(name) || given_back_on_.contains(name)) return from;
    const auto next = among->upper_bound(name);
    const auto given_back = given_back_on_.upper_bound(name);
    if (next == among->end() && given_back == given_back_on_.end()) return nodes.end();
    const bool is_next = given_back == given_back_on_.end() || (next != among->end() && next->first < *given_back);
    from = nodes.lower_bound(is_next ? next->first : *given_back);
  }
  return from;
}

const k8s::Node* Places::search(const Demand& demand, const std::string& suspect, std::string& why,
                                std::vector<DeviceKey>& picked) {
  auto found = searches_.find(std::tie(demand, suspect));
  if (found == searches_.end()) found = searches_.emplace(std::tuple(demand, suspect), Search{}).first;
  auto& known = found->second;
  while (!known.again.empty()) {
    const auto* node = input_.world.node(*known.again.begin());
    if (node != nullptr && fits(*node, demand, {}, suspect, picked)) return node;
    known.again.erase(known.again.begin());
  }
  if (!known.why_none) {
    const auto& nodes = input_.world.nodes();
    const auto* among = candidates(demand);
    for (auto node = candidate(among, nodes.lower_bound(known.next)); node != nodes.end();
         node = candidate(among, std::next(node))) {
      if (!fits(node->second, demand, {}, suspect, picked)) continue;
      known.next = node->first;
      return &node->second;
    }
    known.why_none = why_none(demand, suspect);
  }
  why = *known.why_none;
  return nullptr;
}

bool Places::fits(const k8s::Node& node, const Demand& demand, const Released& released, const std::string& suspect,
                  std::vector<DeviceKey>& picked) {
  picked.clear();
  return accepts(node, demand) && !has_bad(node.meta.name, suspect) && has_resources(node, demand, released) &&
         pick(node.meta.name, demand, released, suspect, picked);
}

bool Places::accepts(const k8s::Node& node, const Demand& demand) const {
  if (!node.ready || node.unschedulable || node.meta.deletion) return false;
  const auto rejects = [&](const auto& wanted) {
    const auto rejecting = input_.rejecting_nodes.find({node.meta.name, wanted.first});
    return rejecting != input_.rejecting_nodes.end() && rejecting->second.since().has_value();
  };
  return std::ranges::none_of(demand.resources, rejects) && std::ranges::all_of(demand.terms, [&](const auto& terms) {
           return k8s::selects_node(*terms, node) && k8s::tolerates_taints(*terms, node);
         });
}

/// Whether the brake counts a bad device of this driver or resource there; a node without a name: network-attached.
bool Places::has_bad(const std::string& node, const std::string& suspect) {
  if (suspect.empty()) return false;
  const auto [found, is_new] = bad_nodes_.try_emplace(suspect);
  if (is_new) {
    for (const auto& [key, bad] : input_.brake.bad()) {
      if (key.scope == suspect) found->second.insert(bad.node);
    }
  }
  return found->second.contains(node);
}

bool Places::has_resources(const k8s::Node& node, const Demand& demand, const Released& released) {
  return std::ranges::all_of(demand.resources, [&](const auto& wanted) {
    const auto& [resource, amount] = wanted;
    auto free = free_on(node, resource);
    for (const auto& uid : released.pods) {
      const auto& pod = input_.world.pod(uid)->pod;
      if (pod.node_name == node.meta.name && !gone_.pods.contains(uid)) free += used_by(pod, resource);
    }
    return free >= amount;
  });
}

std::int64_t Places::free_on(const k8s::Node& node, const std::string& resource) {
  const std::pair key(node.meta.name, resource);
  const auto [found, is_new] = free_.try_emplace(key);
  if (is_new) {
    // The kubelet's numbers show a loss seconds after the pods do.
    auto usable = k8s::amount_of(node.allocatable, resource);
    const auto* book = input_.world.resource_book(node.meta.name, resource);
    if (book != nullptr) usable = std::min(usable, book->capacity - book->held.unhealthy);
    found->second = usable - used_on(node.meta.name, resource, book);
  }
  const auto taken = taken_.find(key);
  return found->second - (taken == taken_.end() ? 0 : taken->second);
}

/// By the pods that are not on their way.
std::int64_t Places::used_on(const std::string& node, const std::string& resource, const ResourceBook* book) const {
  std::int64_t used = 0;
  if (book == nullptr) {
    for (const auto& uid : input_.world.pods_on(node)) {
      if (!gone_.pods.contains(uid)) used += used_by(input_.world.pod(uid)->pod, resource);
    }
    return used;
  }
  used = book->held.requested;
  if (const auto gone = gone_on_.find(node); gone != gone_on_.end()) {
    for (const auto* pod : gone->second) used -= used_by(*pod, resource);
  }
  if (const auto ending = ending_on_.find(node); ending != ending_on_.end()) {
    for (const auto* pod : ending->second) {
      if (!gone_.pods.contains(pod->meta.uid)) used += used_by(*pod, resource);
    }
  }
  return used;
}

/// What the scheduler counts: all that the pod asks for, also of a bad device that allocatable no longer shows. One
/// that is on its way out gives that back, and nobody gets it.
std::int64_t Places::used_by(const k8s::Pod& pod, const std::string& resource) const {
  if (!is_live(pod)) return 0;
  const auto amount = std::min(k8s::amount_of(pod.requests, resource), kMostRequested);
  const bool leaves = pod.meta.deletion && input_.now.wall < input_.world.ours(*pod.meta.deletion);
  return leaves ? std::max<std::int64_t>(amount - unhealthy_held(pod, resource), 0) : amount;
}

bool Places::pick(const std::string& node, const Demand& demand, const Released& released, const std::string& suspect,
                  std::vector<DeviceKey>& picked) {
  static constexpr std::string_view kAnywhere;
  // Kinds that say more come first, so that one that says nothing does not take what only they may have.
  for (const auto& [kind, count] : std::views::reverse(demand.devices)) {
    auto missing = count;
    for (const auto& place : {std::string_view(node), kAnywhere}) {
      if (place.empty() && has_bad({}, suspect)) continue;
      for (const auto& name : input_.world.room().pools_on(place)) {
        if (name.first != kind.driver) continue;
        const auto& devices = input_.world.inventory().pools().at(name).devices;
        for (auto device = devices.begin(); missing > 0 && device != devices.end(); ++device) {
          if (!is_of_kind(device->second, kind)) continue;
          auto key = DeviceKey::dra(name.first, name.second, device->first);
          if (!is_free(key, released) || std::ranges::find(picked, key) != picked.end()) continue;
          picked.push_back(std::move(key));
          --missing;
        }
      }
    }
    if (missing > 0) return false;
  }
  return true;
}

bool Places::is_free(const DeviceKey& key, const Released& released) const {
  if (taken_devices_.contains(key)) return false;
  if (input_.world.is_allocated(key) && !gone_.devices.contains(key) && !released.devices.contains(key)) return false;
  return !is_bad(key) && !input_.world.inventory().unschedulable_because(key);
}

/// A device with an open incident stays bad when nobody reports it any more; one that an operator vouches for is not.
bool Places::is_bad(const DeviceKey& key) const {
  const auto* record = input_.incidents.find(key);
  if (record != nullptr && record->is_open()) return !record->is_acknowledged();
  const auto* state = input_.world.tracker().find(key);
  if (state != nullptr && state->unhealthy_since) return true;
  return is_called_bad_by_taint(input_.policy, input_.world, key, input_.now);
}

bool Places::offers(const k8s::Node& node, const Demand& demand) const {
  const auto has_resource = [&](const auto& wanted) { return k8s::amount_of(node.capacity, wanted.first) > 0; };
  const auto& pools = input_.world.room().pools_on(node.meta.name);
  const auto has_driver = [&](const auto& wanted) {
    return std::ranges::any_of(pools, [&](const auto& pool) { return pool.first == wanted.first.driver; });
  };
  return std::ranges::any_of(demand.resources, has_resource) || std::ranges::any_of(demand.devices, has_driver);
}

std::string Places::why_none(const Demand& demand, const std::string& suspect) {
  std::int64_t unusable = 0;
  std::int64_t unaccepted = 0;
  std::int64_t full = 0;
  std::int64_t inside = 0;
  for (const auto& [name, node] : input_.world.nodes()) {
    if (!offers(node, demand)) continue;
    if (has_bad(node.meta.name, suspect)) {
      ++inside;
    } else if (!node.ready || node.unschedulable || node.meta.deletion) {
      ++unusable;
    } else if (!accepts(node, demand)) {
      ++unaccepted;
    } else {
      ++full;
    }
  }
  std::string nodes;
  const auto add = [&](std::int64_t count, std::string_view what) {
    if (count > 0) nodes += fmt::format("{}{} {}", nodes.empty() ? "" : ", ", count, what);
  };
  add(full, full == 1 ? "node has too few free" : "nodes have too few free");
  add(unaccepted, unaccepted == 1 ? "node does not accept the pod" : "nodes do not accept the pod");
  add(unusable, "not Ready or cordoned");
  add(inside, "within the brake's scope");
  return fmt::format("no node is known to have {} free, healthy and untainted ({}; not judged: {})", to_string(demand),
                     nodes.empty() ? "no node has any" : nodes, not_judged(demand));
}

}  // namespace dhc
