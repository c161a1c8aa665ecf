#include "k8s-client/model/pod_parts.h"

#include <algorithm>
#include <utility>

namespace dhc::k8s {

namespace {

bool is_of_job(const Pod& pod) { return pod.meta.controller && pod.meta.controller->kind == "Job"; }

// A podFailurePolicy may name any condition; of all other pods only few say something to us.
void keep_conditions_that_matter(std::vector<Condition>& conditions, const KeptFields& kept, Pod& pod) {
  const auto is_asked_for = [&](const Condition& condition) { return kept.contains(condition.type); };
  const auto is_known = [&](const Condition& condition) {
    return is_asked_for(condition) || condition.type == kDisruptionTargetCondition;
  };
  const auto is_read = [&](const Condition& condition) {
    return is_known(condition) || (pod.is_marked && condition.type == kReadyCondition);
  };
  pod.has_kept_condition = std::ranges::any_of(conditions, is_asked_for);
  if (!is_of_job(pod)) std::erase_if(conditions, [&](const Condition& condition) { return !is_read(condition); });
  for (auto& condition : conditions) {
    if (!is_known(condition)) condition = {.type = std::move(condition.type), .status = std::move(condition.status)};
  }
  pod.conditions = SharedList(std::move(conditions));
}

// The words of a kubelet that rejects a pod name the resource that it lacked; of other pods they say nothing to us.
void keep_rejection(Pod& pod) {
  constexpr std::string_view kRejected = "UnexpectedAdmissionError";
  constexpr std::size_t kLongest = 1024;
  if (pod.status_reason != kRejected || !is_of_job(pod)) pod.status_message.clear();
  if (pod.status_message.size() > kLongest) pod.status_message = pod.status_message.view().substr(0, kLongest);
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

// **Source:** kubelet, fieldpath.SplitMaybeSubscriptedPath: no other way to write it is accepted.
bool shows_kept(const std::vector<std::string>& shown_fields, const KeptFields& kept) {
  constexpr std::string_view kAnnotation = "metadata.annotations['";
  return std::ranges::any_of(shown_fields, [&](std::string_view path) {
    return path.starts_with(kAnnotation) && kept.contains(path.substr(kAnnotation.size()));
  });
}

bool is_marked(const Pod& pod, const KeptFields& kept) {
  return !pod.pod_group.empty() || std::ranges::any_of(kept.marks, [&](std::string_view mark) {
    return find(pod.meta.labels, mark).has_value() || find(pod.meta.annotations, mark).has_value();
  });
}

// Most pods of a cluster hold no device: their records must cost next to nothing. Of a driver it matters since when it
// has run, whether it is on its way out, and of which revision of its DaemonSet it is.
void keep_identity_only(Pod& pod) {
  Pod bare;
  bare.meta.ns = std::move(pod.meta.ns);
  bare.meta.name = std::move(pod.meta.name);
  bare.meta.uid = std::move(pod.meta.uid);
  bare.meta.resource_version = std::move(pod.meta.resource_version);
  if (!pod.plugin_folders.empty()) {
    bare.meta.creation = pod.meta.creation;
    bare.meta.deletion = pod.meta.deletion;
    bare.meta.deletion_grace_seconds = pod.meta.deletion_grace_seconds;
    pod.meta.labels.erase_if(
        [](const auto& label) { return label.first != kRevisionLabel && label.first != kGenerationLabel; });
    bare.meta.labels = std::move(pod.meta.labels);
    bare.meta.labels.shrink_to_fit();
    bare.meta.controller = std::move(pod.meta.controller);
    bare.node_name = std::move(pod.node_name);
    bare.phase = pod.phase;
    bare.kubelet_plugin = pod.kubelet_plugin;
    bare.plugin_folders = std::move(pod.plugin_folders);
    bare.last_start = pod.last_start;
  }
  pod = std::move(bare);
}

SharedOptional<std::vector<ContainerImage>> sorted(std::vector<ContainerImage>& images) {
  if (images.empty()) return {};
  std::ranges::sort(images);
  images.shrink_to_fit();
  return std::move(images);
}

}  // namespace

PodPhase phase_of(std::string_view word) {
  return word == "Pending"     ? PodPhase::Pending
         : word == "Running"   ? PodPhase::Running
         : word == "Succeeded" ? PodPhase::Succeeded
         : word == "Failed"    ? PodPhase::Failed
                               : PodPhase::Unknown;
}

// **Source:** ROCm/device-metrics-exporter, internal/amdgpu/globals: its socket's folder on the node, from which AMD's
// device plugin asks for each card's health.
constexpr std::string_view kAmdExporterPath = "/var/lib/amd-metrics-exporter/";

// The kubelet's folders through which device plugins and DRA drivers register: only a driver has business there.
void note_plugin_folder(std::string_view path, Pod& pod) {
  constexpr std::string_view kRoot = "/var/lib/kubelet/";
  constexpr std::string_view kDrivers = "plugins/";
  const auto keep = [&](std::string_view name) {
    const auto at = std::ranges::lower_bound(pod.plugin_folders, name);
    if (at == pod.plugin_folders.end() || *at != name) pod.plugin_folders.insert(at, std::string(name));
  };
  if ((std::string(path) + '/').starts_with(kAmdExporterPath)) return keep(kAmdExporterFolder);
  if (!path.starts_with(kRoot)) return;
  auto folder = path.substr(kRoot.size());
  if (!folder.starts_with("device-plugins") && !folder.starts_with("plugins")) return;
  pod.kubelet_plugin = true;
  while (folder.ends_with('/')) folder.remove_suffix(1);
  // Of a driver's own folder its name matters, of the others what lies below them does not.
  const auto end = folder.find('/', folder.starts_with(kDrivers) ? kDrivers.size() : 0);
  keep(folder.substr(0, end));
}

bool finish_pod(PodParts& parts, const KeptFields& kept, Fault& fault, Pod& pod) {
  std::vector<ResourceAmount> requests;
  if (!total_requests(parts.container_requests, parts.init_requests, requests)) {
    fault.is("resource amounts add up to more than 2^63-1");
    return fault.in("spec");
  }
  pod.requests = std::move(requests);
  pod.claims = merge_claims(parts);
  pod.scheduling = Shared(std::move(parts.scheduling));
  std::array lists = {std::move(parts.reports[0].allocated), std::move(parts.reports[1].allocated),
                      std::move(parts.reports[2].allocated)};
  pod.allocated = merge_allocated(lists);
  pod.images = sorted(parts.images);
  pod.exits = std::move(parts.reports[0].exits);
  pod.exits.insert(pod.exits.end(), parts.reports[1].exits.begin(), parts.reports[1].exits.end());
  pod.exits.shrink_to_fit();
  pod.last_start.reset();
  const bool failed_job_pod = pod.phase == PodPhase::Failed && is_of_job(pod);
  if (!pod.plugin_folders.empty() || failed_job_pod)
    pod.last_start = std::max(parts.reports[0].last_start, parts.reports[1].last_start);
  pod.is_marked = is_marked(pod, kept);
  keep_conditions_that_matter(parts.conditions, kept, pod);
  keep_rejection(pod);
  pod.shows_kept_annotation = shows_kept(parts.shown_fields, kept);
  if (!is_kept_whole(pod)) keep_identity_only(pod);
  return true;
}

}  // namespace dhc::k8s
