#include "domain/resolver.h"

#include <algorithm>
#include <map>
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

/// True if the resource ID is `driver/pool/device`, or a CDI name that ends in `-device` or `=device`.
bool names_device(std::string_view resource_id, const k8s::AllocationResult& result) {
  if (resource_id == to_string(key_of(result))) return true;
  if (resource_id.size() <= result.device.size() || !resource_id.ends_with(result.device)) return false;
  const char before = resource_id[resource_id.size() - result.device.size() - 1];
  return before == '-' || before == '=';
}

void fold(Holding& holding, k8s::Health health, std::string_view message) {
  if (!holding.reported || health > *holding.reported) {
    holding.reported = health;
    holding.message = message;
  } else if (health == *holding.reported && (holding.message.empty() || message < holding.message)) {
    if (!message.empty()) holding.message = message;
  }
}

class Builder {
 public:
  Builder(const k8s::Pod& pod, const ClaimLookup& find_claim) : pod_(pod), find_claim_(find_claim) {}

  std::vector<Holding> build() {
    for (const auto& pod_claim : pod_.claims) add_claim(pod_claim);
    for (const auto& entry : pod_.allocated) {
      if (entry.name.starts_with(kClaimPrefix)) {
        add_claim_report(entry);
      } else {
        add_plugin_report(entry);
      }
    }
    std::vector<Holding> all;
    all.reserve(holdings_.size());
    for (auto& [key, holding] : holdings_) all.push_back(std::move(holding));
    return all;
  }

 private:
  const k8s::ResourceClaim* claim_of(const k8s::PodClaim& pod_claim) const {
    return pod_claim.claim_name.empty() ? nullptr : find_claim_(pod_.meta.ns, pod_claim.claim_name);
  }

  Holding& holding_of(DeviceKey key) {
    auto& holding = holdings_[key];
    holding.key = std::move(key);
    return holding;
  }

  void describe(Holding& holding, const k8s::ResourceClaim& claim) const {
    holding.claim = claim_key(claim.meta.ns, claim.meta.name);
    holding.claim_uid = claim.meta.uid;
    holding.shared = !owns_claim(pod_, claim);
  }

  void add_claim(const k8s::PodClaim& pod_claim) {
    const auto* claim = claim_of(pod_claim);
    if (claim == nullptr) return;
    for (const auto& result : claim->results) {
      if (!result.admin_access) describe(holding_of(key_of(result)), *claim);
    }
  }

  void add_plugin_report(const k8s::AllocatedResource& entry) {
    for (const auto& device : entry.devices) {
      fold(holding_of(DeviceKey::plugin(pod_.node_name, entry.name, device.resource_id)), device.health,
           device.message);
    }
  }

  void add_claim_report(const k8s::AllocatedResource& entry) {
    const std::string_view rest = std::string_view(entry.name).substr(kClaimPrefix.size());
    const auto slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    const std::string_view request = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    auto named = std::ranges::find(pod_.claims, name, &k8s::PodClaim::name);
    // From 1.38 on, DRA-backed extended resources are to be named by the claim object. Source: kubernetes#139939.
    if (named == pod_.claims.end()) named = std::ranges::find(pod_.claims, name, &k8s::PodClaim::claim_name);
    if (named == pod_.claims.end()) return;
    if (const auto* claim = claim_of(*named)) match(entry, *claim, request);
  }

  void match(const k8s::AllocatedResource& entry, const k8s::ResourceClaim& claim, std::string_view request) {
    Results results;
    for (const auto& result : claim.results) {
      const bool asked =
          request.empty() || result.request.empty() || base_request(result.request) == base_request(request);
      if (asked && !result.admin_access) results.push_back(&result);
    }
    if (results.size() == 1) {
      for (const auto& device : entry.devices)
        fold(holding_of(key_of(*results.front())), device.health, device.message);
    } else if (!results.empty()) {
      match_by_name(entry, claim, results);
    }
  }

  void match_by_name(const k8s::AllocatedResource& entry, const k8s::ResourceClaim& claim, const Results& results) {
    std::map<const k8s::AllocationResult*, std::vector<const k8s::ReportedDevice*>> claimed;
    std::vector<const k8s::ReportedDevice*> lost;
    for (const auto& device : entry.devices) {
      Results fits;
      std::ranges::copy_if(results, std::back_inserter(fits),
                           [&](const auto* r) { return names_device(device.resource_id, *r); });
      if (fits.size() == 1) {
        claimed[fits.front()].push_back(&device);
      } else {
        lost.push_back(&device);
      }
    }
    std::vector<DeviceKey> open;  // what an ambiguous report may mean: the devices that no report names
    for (const auto* result : results) {
      const auto named = claimed.find(result);
      if (named != claimed.end() && named->second.size() == 1) {
        auto& holding = holding_of(key_of(*result));
        holding.inferred = true;
        fold(holding, named->second.front()->health, named->second.front()->message);
        continue;
      }
      open.push_back(key_of(*result));
      if (named != claimed.end()) lost.insert(lost.end(), named->second.begin(), named->second.end());
    }
    std::ranges::sort(open);
    for (const auto* device : lost) add_ambiguous(*device, claim, *results.front(), open);
  }

  void add_ambiguous(const k8s::ReportedDevice& device, const k8s::ResourceClaim& claim,
                     const k8s::AllocationResult& first, const std::vector<DeviceKey>& open) {
    auto& holding = holding_of(DeviceKey::dra(first.driver, first.pool, device.resource_id));
    holding.ambiguous = true;
    holding.candidates = open;
    describe(holding, claim);
    fold(holding, device.health, device.message);
  }

  const k8s::Pod& pod_;
  const ClaimLookup& find_claim_;
  std::map<DeviceKey, Holding> holdings_;
};

}  // namespace

std::vector<Holding> resolve_holdings(const k8s::Pod& pod, const ClaimLookup& find_claim) {
  return Builder(pod, find_claim).build();
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
