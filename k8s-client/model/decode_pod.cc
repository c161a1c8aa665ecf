#include "k8s-client/model/decode_pod.h"

#include <algorithm>
#include <array>
#include <utility>

#include "k8s-client/model/allocated_status.h"
#include "k8s-client/model/decode_meta.h"
#include "k8s-client/model/decode_scheduling.h"
#include "k8s-client/model/pod_requests.h"

namespace dhc::k8s {

namespace {

// What a pod's record is put together from, once all of it is known: the lists may come in any order, and of duplicate
// keys the last counts.
struct PodParts {
  std::vector<ResourceAmount> container_requests;
  std::vector<InitRequest> init_requests;
  std::vector<PodClaim> spec_claims;
  std::vector<PodClaim> status_claims;
  std::string extended_claim;
  SchedulingTerms scheduling;
  std::array<ContainerReports, 3> reports;  ///< Containers, init, ephemeral.
  std::vector<AllocatedResource> pod_level;
};

bool read_spec_claim(JsonValue value, Fault& fault, PodClaim& claim) {
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "name") return read_name(field, fault, claim.name) || fault.in(key);
    if (key == "resourceClaimName") return read_name(field, fault, claim.claim_name) || fault.in(key);
    return true;
  });
  return read && require(claim.name, fault, "name");
}

bool read_extended_claim(JsonValue value, Fault& fault, std::string& claim_name) {
  claim_name.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "resourceClaimName") return read_name(field, fault, claim_name) || fault.in(key);
    return true;
  });
}

// The kubelet's folders through which device plugins and DRA drivers register: only a driver has business there.
void note_plugin_folder(std::string_view path, Pod& pod) {
  constexpr std::string_view kRoot = "/var/lib/kubelet/";
  constexpr std::string_view kDrivers = "plugins/";
  if (!path.starts_with(kRoot)) return;
  auto folder = path.substr(kRoot.size());
  if (!folder.starts_with("device-plugins") && !folder.starts_with("plugins")) return;
  pod.kubelet_plugin = true;
  while (folder.ends_with('/')) folder.remove_suffix(1);
  // Of a driver's own folder its name matters, of the others what lies below them does not.
  const auto end = folder.find('/', folder.starts_with(kDrivers) ? kDrivers.size() : 0);
  std::string name(folder.substr(0, end));
  const auto at = std::ranges::lower_bound(pod.plugin_folders, name);
  if (at == pod.plugin_folders.end() || *at != name) pod.plugin_folders.insert(at, std::move(name));
}

bool read_volume(JsonValue value, Fault& fault, Pod& pod) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "hostPath") return true;
    const bool read = each_field(field, fault, [&](std::string_view part, JsonValue text) {
      if (part != "path") return true;
      std::string path;
      if (!read_name(text, fault, path)) return fault.in(part);
      note_plugin_folder(path, pod);
      return true;
    });
    return read || fault.in(key);
  });
}

bool read_volumes(JsonValue value, Fault& fault, Pod& pod) {
  pod.kubelet_plugin = false;
  pod.plugin_folders.clear();
  return each_item(value, fault, [&](JsonValue item) { return read_volume(item, fault, pod); });
}

bool read_spec(JsonValue value, Fault& fault, Pod& pod, PodParts& parts) {
  pod.node_name.clear();
  pod.grace_period_seconds.reset();
  pod.kubelet_plugin = false;
  pod.plugin_folders.clear();
  parts.container_requests.clear();
  parts.init_requests.clear();
  parts.spec_claims.clear();
  parts.scheduling = {};
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "nodeName") return read_name(field, fault, pod.node_name);
      if (key == "terminationGracePeriodSeconds") return read_integer(field, fault, pod.grace_period_seconds);
      if (key == "containers") return read_container_requests(field, fault, parts.container_requests);
      if (key == "initContainers") return read_list(field, fault, parts.init_requests, read_init_request);
      if (key == "resourceClaims") return read_list(field, fault, parts.spec_claims, read_spec_claim);
      if (key == "volumes") return read_volumes(field, fault, pod);
      return read_scheduling_field(key, field, fault, parts.scheduling);
    };
    return read() || fault.in(key);
  });
}

bool read_phase(JsonValue value, Fault& fault, PodPhase& phase) {
  std::string word;
  if (!read_name(value, fault, word)) return false;
  phase = word == "Pending"     ? PodPhase::Pending
          : word == "Running"   ? PodPhase::Running
          : word == "Succeeded" ? PodPhase::Succeeded
          : word == "Failed"    ? PodPhase::Failed
                                : PodPhase::Unknown;
  return true;
}

bool read_pod_conditions(JsonValue value, Fault& fault, std::vector<Condition>& conditions) {
  conditions.clear();
  return each_item(value, fault, [&](JsonValue item) {
    Condition condition;
    if (!read_condition(item, fault, condition)) return false;
    conditions.push_back(std::move(condition));
    return true;
  });
}

bool is_of_job(const Pod& pod) { return pod.meta.controller && pod.meta.controller->kind == "Job"; }

// A podFailurePolicy may name any condition; of all other pods only few say something to us.
void keep_conditions_that_matter(Pod& pod, const KeptFields& kept) {
  const auto is_asked_for = [&](const Condition& condition) { return kept.contains(condition.type); };
  const auto is_known = [&](const Condition& condition) {
    return is_asked_for(condition) || condition.type == kDisruptionTargetCondition;
  };
  pod.has_kept_condition = std::ranges::any_of(pod.conditions, is_asked_for);
  if (!is_of_job(pod)) std::erase_if(pod.conditions, [&](const Condition& condition) { return !is_known(condition); });
  for (auto& condition : pod.conditions) {
    if (!is_known(condition)) condition = {.type = std::move(condition.type), .status = std::move(condition.status)};
  }
  pod.conditions.shrink_to_fit();
}

// The words of a kubelet that rejects a pod name the resource that it lacked; of other pods they say nothing to us.
void keep_rejection(Pod& pod) {
  constexpr std::string_view kRejected = "UnexpectedAdmissionError";
  constexpr std::size_t kLongest = 1024;
  if (pod.status_reason != kRejected || !is_of_job(pod)) pod.status_message.clear();
  if (pod.status_message.size() > kLongest) pod.status_message.resize(kLongest);
  pod.status_message.shrink_to_fit();
}

bool read_status(JsonValue value, Fault& fault, Pod& pod, PodParts& parts) {
  pod.phase = PodPhase::Unknown;
  pod.status_reason.clear();
  pod.status_message.clear();
  pod.conditions.clear();
  parts.status_claims.clear();
  parts.extended_claim.clear();
  for (auto& report : parts.reports) report = {};
  parts.pod_level.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "phase") return read_phase(field, fault, pod.phase);
      if (key == "reason") return read_name(field, fault, pod.status_reason);
      if (key == "message") return read_text(field, fault, pod.status_message);
      if (key == "conditions") return read_pod_conditions(field, fault, pod.conditions);
      if (key == "containerStatuses") return read_container_reports(field, fault, parts.reports[0]);
      if (key == "initContainerStatuses") return read_container_reports(field, fault, parts.reports[1]);
      if (key == "ephemeralContainerStatuses") return read_container_reports(field, fault, parts.reports[2]);
      if (key == "allocatedResourcesStatus") return read_list(field, fault, parts.pod_level, read_allocated_resource);
      if (key == "resourceClaimStatuses") return read_list(field, fault, parts.status_claims, read_spec_claim);
      if (key == "extendedResourceClaimStatus") return read_extended_claim(field, fault, parts.extended_claim);
      return true;
    };
    return read() || fault.in(key);
  });
}

// The claims of the spec with the names that the status knows; claims that only the status knows follow.
std::vector<PodClaim> merge_claims(PodParts& parts) {
  auto claims = std::move(parts.spec_claims);
  for (auto& known : parts.status_claims) {
    const auto at = std::ranges::find(claims, known.name, &PodClaim::name);
    if (at == claims.end()) {
      claims.push_back(std::move(known));
    } else if (at->claim_name.empty()) {
      at->claim_name = std::move(known.claim_name);
    }
  }
  // Named by the object because the pod has no entry for it. **Source:** KEP-5004.
  if (!parts.extended_claim.empty()) claims.push_back(PodClaim{parts.extended_claim, parts.extended_claim});
  claims.shrink_to_fit();
  return claims;
}

// Most pods of a cluster hold no device: their records must cost next to nothing. Of a driver it matters since when it
// has run.
void keep_identity_only(Pod& pod) {
  Pod bare;
  bare.meta.ns = std::move(pod.meta.ns);
  bare.meta.name = std::move(pod.meta.name);
  bare.meta.uid = std::move(pod.meta.uid);
  bare.meta.resource_version = std::move(pod.meta.resource_version);
  if (pod.kubelet_plugin) {
    bare.meta.creation = pod.meta.creation;
    bare.meta.controller = std::move(pod.meta.controller);
    bare.node_name = std::move(pod.node_name);
    bare.phase = pod.phase;
    bare.kubelet_plugin = true;
    bare.plugin_folders = std::move(pod.plugin_folders);
    bare.last_start = pod.last_start;
  }
  pod = std::move(bare);
}

}  // namespace

bool read_pod(JsonObject root, Fault& fault, const KeptFields& kept, Pod& pod) {
  PodParts parts;
  const bool read = read_root(root, fault, kept, Kind::Pod, pod.meta, [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_spec(value, fault, pod, parts);
    if (key == "status") return read_status(value, fault, pod, parts);
    return true;
  });
  if (!read) return false;
  if (!total_requests(parts.container_requests, parts.init_requests, pod.requests)) {
    fault.is("resource amounts add up to more than 2^63-1");
    return fault.in("spec");
  }
  pod.claims = merge_claims(parts);
  pod.scheduling = Shared(std::move(parts.scheduling));
  std::array lists = {std::move(parts.reports[0].allocated), std::move(parts.reports[1].allocated),
                      std::move(parts.reports[2].allocated), std::move(parts.pod_level)};
  pod.allocated = merge_allocated(lists);
  pod.exits = std::move(parts.reports[0].exits);
  pod.exits.insert(pod.exits.end(), parts.reports[1].exits.begin(), parts.reports[1].exits.end());
  pod.exits.shrink_to_fit();
  pod.last_start.reset();
  if (pod.kubelet_plugin) pod.last_start = std::max(parts.reports[0].last_start, parts.reports[1].last_start);
  keep_conditions_that_matter(pod, kept);
  keep_rejection(pod);
  if (!can_hold_devices(pod)) keep_identity_only(pod);
  return true;
}

}  // namespace dhc::k8s
