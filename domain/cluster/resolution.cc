#include "domain/cluster/resolution.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace dhc {

namespace {

constexpr std::string_view kClaimPrefix = "claim:";

using Results = std::vector<const k8s::AllocationResult*>;

DeviceKey key_of(const k8s::AllocationResult& result) {
  return DeviceKey::dra(result.driver, result.pool, result.device);
}

/// `request` of `request/subrequest`: the kubelet compares base names. **Source:** kubelet
/// pkg/kubelet/cm/dra/manager.go.
std::string_view base_request(std::string_view request) { return request.substr(0, request.find('/')); }

/// True if the ID names a device in full and is no CDI name, which has an equals sign. **Source:** CDI's
/// `vendor/class=name`.
bool is_full_id(std::string_view resource_id) {
  const auto first = resource_id.find('/');
  return !resource_id.contains('=') && first != std::string_view::npos &&
         resource_id.find('/', first + 1) != std::string_view::npos;
}

/// One device that an entry may speak of.
struct Target {
  DeviceKey key;
  bool held = false;  ///< Not only observed.
};

/// The devices that an entry may speak of, each once: a claim may have several shares of one device. **Source:**
/// KEP-5075.
class Targets {
 public:
  explicit Targets(const Results& results) {
    for (const auto* result : results) {
      auto& target = by_key_[key_of(*result)];
      target.key = key_of(*result);
      target.held = target.held || !result->admin_access;
    }
    for (const auto& [key, target] : by_key_) {
      by_name_[key.device].push_back(&target);
      by_full_id_.emplace(to_string(key), &target);
    }
  }

  [[nodiscard]] const std::map<DeviceKey, Target>& all() const { return by_key_; }

  /// Those that the resource ID names: `driver/pool/device`, or a CDI name that ends in `-device` or `=device`.
  [[nodiscard]] std::vector<const Target*> named_by(std::string_view resource_id) const {
    std::vector<const Target*> named;
    if (is_full_id(resource_id)) {
      if (const auto found = by_full_id_.find(resource_id); found != by_full_id_.end()) named.push_back(found->second);
      return named;
    }
    for (std::size_t at = 1; at < resource_id.size(); ++at) {
      if (resource_id[at - 1] != '-' && resource_id[at - 1] != '=') continue;
      const auto found = by_name_.find(resource_id.substr(at));
      if (found != by_name_.end()) named.insert(named.end(), found->second.begin(), found->second.end());
    }
    return named;
  }

 private:
  std::map<DeviceKey, Target> by_key_;
  std::map<std::string, std::vector<const Target*>, std::less<>> by_name_;
  std::map<std::string, const Target*, std::less<>> by_full_id_;
};

void fold(HeldDevice& held_device, const k8s::ReportedDevice& report) {
  held_device.restarts += report.restarts;
  for (const auto& container : report.containers) {
    const auto place = std::ranges::lower_bound(held_device.containers, container);
    if (place == held_device.containers.end() || *place != container) held_device.containers.insert(place, container);
  }
  const auto health = report.health;
  const auto& message = report.message;
  const bool is_first = held_device.other_word.empty() || report.other_word < held_device.other_word;
  if (!report.other_word.empty() && is_first) held_device.other_word = report.other_word;
  if (!held_device.reported || health > *held_device.reported) {
    held_device.reported = health;
    held_device.message = message;
  } else if (health == *held_device.reported && (held_device.message.empty() || message < held_device.message)) {
    if (!message.empty()) held_device.message = message;
  }
}

/// One entry of the pod's status about a claim.
struct Entry {
  const k8s::AllocatedResource* entry = nullptr;
  const k8s::PodClaim* pod_claim = nullptr;
  std::string_view request;  ///< Empty: all of the claim's.
};

class Builder {
 public:
  Builder(const k8s::Pod& pod, const ClaimLookup& find_claim) : pod_(pod), find_claim_(find_claim) {}

  Resolution build() {
    std::map<const k8s::PodClaim*, std::vector<Entry>> entries;
    for (const auto& pod_claim : pod_.claims) entries[&pod_claim];
    for (const auto& entry : pod_.allocated) {
      if (!entry.name.starts_with(kClaimPrefix)) {
        add_plugin_report(entry);
      } else if (const auto found = entry_of(entry); found.pod_claim != nullptr) {
        entries[found.pod_claim].push_back(found);
      }
    }
    for (const auto& [pod_claim, of_claim] : entries) add_claim(*pod_claim, of_claim);
    result_.held_devices.reserve(held_devices_.size());
    for (auto& [key, held_device] : held_devices_) result_.held_devices.push_back(std::move(held_device));
    return std::move(result_);
  }

 private:
  Entry entry_of(const k8s::AllocatedResource& entry) const {
    const std::string_view rest = std::string_view(entry.name).substr(kClaimPrefix.size());
    const auto slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    auto named = std::ranges::find(pod_.claims, name, &k8s::PodClaim::name);
    // From 1.38 on, DRA-backed extended resources are to be named by the claim object. Source: kubernetes#139939.
    if (named == pod_.claims.end()) named = std::ranges::find(pod_.claims, name, &k8s::PodClaim::claim_name);
    return {.entry = &entry,
            .pod_claim = named == pod_.claims.end() ? nullptr : &*named,
            .request = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1)};
  }

  HeldDevice& held_device_of(const DeviceKey& key) {
    auto& held_device = held_devices_[key];
    held_device.key = key;
    return held_device;
  }

  void describe(HeldDevice& held_device, const k8s::ResourceClaim& claim) const {
    held_device.claim = claim_key(claim.meta.ns, claim.meta.name);
    held_device.claim_uid = claim.meta.uid;
    held_device.shared = !owns_claim(pod_, claim);
  }

  void add_plugin_report(const k8s::AllocatedResource& entry) {
    for (const auto& device : entry.devices) {
      fold(held_device_of(DeviceKey::plugin(pod_.node_name, entry.name, device.resource_id)), device);
    }
  }

  static Results asked_by(const Entry& entry, const k8s::ResourceClaim& claim) {
    Results results;
    for (const auto& result : claim.results) {
      const bool asked = entry.request.empty() || result.request.empty() ||
                         base_request(result.request) == base_request(entry.request);
      if (asked) results.push_back(&result);
    }
    return results;
  }

  void add_claim(const k8s::PodClaim& pod_claim, const std::vector<Entry>& entries) {
    const auto* claim = pod_claim.claim_name.empty() ? nullptr : find_claim_(pod_.meta.ns, pod_claim.claim_name);
    if (claim == nullptr || !claim->allocated) {
      const std::string why = claim == nullptr ? "is not known here" : "as known here is not allocated";
      return doubt_claim(claim_key(pod_.meta.ns, pod_claim.claim_name), entries, nullptr, why);
    }
    if (const auto why = contradiction(*claim, entries)) {
      const auto key = claim_key(claim->meta.ns, claim->meta.name);
      result_.behind.insert(key);
      return doubt_claim(key, entries, claim, *why);
    }
    for (const auto& result : claim->results) {
      if (!result.admin_access) describe(held_device_of(key_of(result)), *claim);
    }
    for (const auto& entry : entries) match(*entry.entry, *claim, asked_by(entry, *claim));
  }

  /// How the claim as known differs from the one that the kubelet speaks of, in words; none: it may be the same. A
  /// claim that several pods name is deallocated and allocated anew under its name and UID, and so is a pod's own
  /// before the pod is bound. **Source:** kubelet runs a pod only if its claims are reserved for it.
  std::optional<std::string> contradiction(const k8s::ResourceClaim& claim, const std::vector<Entry>& entries) const {
    const auto is_ours = [&](const k8s::ClaimConsumer& consumer) {
      return consumer.uid == pod_.meta.uid || consumer.resource != "pods" || !consumer.api_group.empty();
    };
    if (!claim.reserved_for.empty() && std::ranges::none_of(claim.reserved_for, is_ours)) {
      return "as known here is reserved for other pods";
    }
    for (const auto& [entry, pod_claim, request] : entries) {
      const auto asked = asked_by({.entry = entry, .pod_claim = pod_claim, .request = request}, claim);
      if (entry->devices.size() > asked.size()) return "as known here has fewer devices than it reports";
      if (const auto why = contradiction(*entry, asked, claim)) return why;
    }
    return std::nullopt;
  }

  /// A full ID must be one of those that its own entry asks for: devices may have changed places within the claim.
  static std::optional<std::string> contradiction(const k8s::AllocatedResource& entry, const Results& asked,
                                                  const k8s::ResourceClaim& claim) {
    std::set<std::string> full_ids;
    for (const auto& device : entry.devices) {
      if (!is_full_id(device.resource_id)) continue;
      if (full_ids.empty()) {
        for (const auto* result : asked) full_ids.insert(to_string(key_of(*result)));
      }
      if (full_ids.contains(device.resource_id)) continue;
      const bool is_another = std::ranges::any_of(
          claim.results, [&](const auto& result) { return to_string(key_of(result)) == device.resource_id; });
      return is_another ? "as known here allocates it to another request" : "as known here does not allocate it";
    }
    return std::nullopt;
  }

  /// Said only where something waits for it.
  void doubt_claim(const std::string& claim, const std::vector<Entry>& entries, const k8s::ResourceClaim* known,
                   const std::string& why) {
    for (const auto& entry : entries) {
      const auto bad = std::ranges::find(entry.entry->devices, k8s::Health::Unhealthy, &k8s::ReportedDevice::health);
      if (bad == entry.entry->devices.end()) continue;
      DeviceKey about;
      if (known != nullptr && !known->results.empty()) about = key_of(known->results.front());
      if (is_full_id(bad->resource_id)) about.scope = bad->resource_id.substr(0, bad->resource_id.find('/'));
      result_.doubts.push_back({.kind = ReportDoubt::Kind::ClaimBehind,
                                .claim = claim,
                                .about = about,
                                .why = "the kubelet reports " + bad->resource_id + " Unhealthy, and claim " + claim +
                                       " " + why + ": the watch of ResourceClaims is behind"});
      return;
    }
  }

  void match(const k8s::AllocatedResource& entry, const k8s::ResourceClaim& claim, const Results& results) {
    const Targets targets(results);
    if (targets.all().size() == 1) {
      const auto& [key, only] = *targets.all().begin();
      if (!only.held) return;
      for (const auto& device : entry.devices) fold(held_device_of(key), device);
      return;
    }
    match_by_name(entry, claim, targets);
    if (entry.devices.size() >= targets.all().size()) return;
    result_.doubts.push_back(
        {.kind = ReportDoubt::Kind::Incomplete,
         .claim = claim_key(claim.meta.ns, claim.meta.name),
         .about = targets.all().begin()->first,
         .why = "the kubelet reports " + std::to_string(entry.devices.size()) + " of the " +
                std::to_string(targets.all().size()) + " devices of claim " +
                claim_key(claim.meta.ns, claim.meta.name) + " (entry " + entry.name +
                "): their driver gives several the same resourceID, and the health of the others is not known"});
  }

  void match_by_name(const k8s::AllocatedResource& entry, const k8s::ResourceClaim& claim, const Targets& targets) {
    std::map<DeviceKey, std::vector<const k8s::ReportedDevice*>> claimed;
    std::vector<const k8s::ReportedDevice*> lost;
    for (const auto& device : entry.devices) {
      const auto named = targets.named_by(device.resource_id);
      if (named.size() == 1) {
        claimed[named.front()->key].push_back(&device);
      } else {
        lost.push_back(&device);
      }
    }
    std::vector<const Target*> open;  // what an ambiguous report may mean: the devices that no report names
    for (const auto& [key, target] : targets.all()) {
      const auto named = claimed.find(key);
      if (named == claimed.end() || named->second.size() != 1) {
        open.push_back(&target);
        if (named != claimed.end()) lost.insert(lost.end(), named->second.begin(), named->second.end());
        continue;
      }
      if (!target.held) continue;
      auto& held_device = held_device_of(key);
      held_device.inferred = held_device.inferred || !is_full_id(named->second.front()->resource_id);
      fold(held_device, *named->second.front());
    }
    for (const auto* device : lost) add_lost(*device, entry, claim, open);
  }

  /// A report that may mean any of `open`. Its key is its own: another pod's report, or another entry's, may have the
  /// same resource ID and mean another device.
  void add_lost(const k8s::ReportedDevice& device, const k8s::AllocatedResource& entry, const k8s::ResourceClaim& claim,
                const std::vector<const Target*>& open) {
    const auto is_held = [](const Target* target) { return target->held; };
    if (std::ranges::none_of(open, is_held)) return;
    const auto& any = (*std::ranges::find_if(open, is_held))->key;
    if (!std::ranges::all_of(open, is_held)) {
      if (device.health != k8s::Health::Unhealthy) return;
      return result_.doubts.push_back(
          {.kind = ReportDoubt::Kind::Observed,
           .claim = claim_key(claim.meta.ns, claim.meta.name),
           .about = any,
           .why = "the kubelet reports " + device.resource_id + " Unhealthy for claim " +
                  claim_key(claim.meta.ns, claim.meta.name) +
                  ", which may mean a device that the pod only observes (adminAccess): nothing is done"});
    }
    auto& held_device = held_device_of(
        DeviceKey::dra(any.scope, any.place, device.resource_id + "@" + pod_.meta.uid + "/" + entry.name));
    held_device.ambiguous = true;
    held_device.candidates.clear();
    for (const auto* target : open) held_device.candidates.push_back(target->key);
    describe(held_device, claim);
    fold(held_device, device);
  }

  const k8s::Pod& pod_;
  const ClaimLookup& find_claim_;
  std::map<DeviceKey, HeldDevice> held_devices_;
  Resolution result_;
};

}  // namespace

Resolution resolve_held_devices(const k8s::Pod& pod, const ClaimLookup& find_claim) {
  return Builder(pod, find_claim).build();
}

const HeldDevice* find_held_device(std::span<const HeldDevice> held_devices, const DeviceKey& key) {
  const auto found = std::ranges::lower_bound(held_devices, key, {}, &HeldDevice::key);
  return found == held_devices.end() || found->key != key ? nullptr : &*found;
}

bool owns_claim(const k8s::Pod& pod, const k8s::ResourceClaim& claim) {
  return claim.meta.controller && claim.meta.controller->kind == "Pod" && claim.meta.controller->uid == pod.meta.uid;
}

std::string claim_key(std::string_view ns, std::string_view name) {
  std::string key;
  key.reserve(ns.size() + 1 + name.size());
  key.append(ns).append("/").append(name);
  return key;
}

}  // namespace dhc
