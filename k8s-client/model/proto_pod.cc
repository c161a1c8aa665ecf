#include "k8s-client/model/pod_parts.h"
#include "k8s-client/model/proto_containers.h"
#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"
#include "k8s-client/model/proto_scheduling.h"

namespace dhc::k8s::proto {

namespace {

// **Source:** core/v1 generated.proto, PodResourceClaim.
bool read_spec_claim(const Value& value, Fault& fault, PodClaim& claim) {
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, claim.name) || fault.in("name");
    if (tag == 3) return read_name(field, fault, claim.claim_name) || fault.in("resourceClaimName");
    return true;
  });
  return read && require(claim.name, fault, "name");
}

// **Source:** core/v1 generated.proto, PodResourceClaimStatus.
bool read_status_claim(const Value& value, Fault& fault, PodClaim& claim) {
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, claim.name) || fault.in("name");
    if (tag == 2) return read_name(field, fault, claim.claim_name) || fault.in("resourceClaimName");
    return true;
  });
  return read && require(claim.name, fault, "name");
}

// **Source:** core/v1 generated.proto, PodExtendedResourceClaimStatus.
bool read_extended_claim(const Value& value, Fault& fault, std::string& claim_name) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 2 || read_name(field, fault, claim_name) || fault.in("resourceClaimName");
  });
}

// **Source:** core/v1 generated.proto, HostPathVolumeSource.
bool read_host_path(const Value& value, Fault& fault, Pod& pod) {
  std::string path;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_name(field, fault, path) || fault.in("path");
  });
  if (read) note_plugin_folder(path, pod);
  return read;
}

// **Source:** core/v1 generated.proto, DownwardAPIVolumeFile and ObjectFieldSelector.
bool read_shown_field(const Value& value, Fault& fault, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& reference) {
    if (tag != 2) return true;
    const bool read = each_field(reference, fault, [&](std::uint32_t part, const Value& path) {
      return part != 2 || read_text(path, fault, shown.emplace_back()) || fault.in("fieldPath");
    });
    return read || fault.in("fieldRef");
  });
}

// **Source:** core/v1 generated.proto, DownwardAPIVolumeSource and DownwardAPIProjection.
bool read_downward(const Value& value, Fault& fault, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& item) {
    return tag != 1 || read_shown_field(item, fault, shown) || fault.in("items");
  });
}

// **Source:** core/v1 generated.proto, ProjectedVolumeSource and VolumeProjection.
bool read_projected(const Value& value, Fault& fault, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& source) {
    if (tag != 1) return true;
    const bool read = each_field(source, fault, [&](std::uint32_t part, const Value& field) {
      return part != 2 || read_downward(field, fault, shown) || fault.in("downwardAPI");
    });
    return read || fault.in("sources");
  });
}

// **Source:** core/v1 generated.proto, Volume and VolumeSource, which JSON writes as one.
bool read_volume(const Value& value, Fault& fault, Pod& pod, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& source) {
    if (tag != 2) return true;
    return each_field(source, fault, [&](std::uint32_t part, const Value& field) {
      if (part == 16) return read_downward(field, fault, shown) || fault.in("downwardAPI");
      if (part == 26) return read_projected(field, fault, shown) || fault.in("projected");
      return part != 1 || read_host_path(field, fault, pod) || fault.in("hostPath");
    });
  });
}

// **Source:** core/v1 generated.proto, PodSchedulingGroup.
bool read_scheduling_group(const Value& value, Fault& fault, SharedText& group) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_name(field, fault, group) || fault.in("podGroupName");
  });
}

// **Source:** core/v1 generated.proto, PodSpec.
bool read_spec(const Value& value, Fault& fault, Pod& pod, PodParts& parts, SchedulingReader& scheduling) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_volume(field, fault, pod, parts.shown_fields) || fault.in("volumes");
      case 2:
        return read_container(field, fault, parts.container_requests, parts.images) || fault.in("containers");
      case 4:
        return read_integer(field, fault, pod.grace_period_seconds) || fault.in("terminationGracePeriodSeconds");
      case 10:
        return read_name(field, fault, pod.node_name) || fault.in("nodeName");
      case 20:
        return read_item(field, fault, parts.init_requests, read_request) || fault.in("initContainers");
      case 39:
        return read_item(field, fault, parts.spec_claims, read_spec_claim) || fault.in("resourceClaims");
      case 43:
        return read_scheduling_group(field, fault, pod.pod_group) || fault.in("schedulingGroup");
      default:
        return scheduling.read_field(tag, field, fault);
    }
  });
}

bool read_phase(const Value& value, Fault& fault, Pod& pod) {
  std::string word;
  if (!read_name(value, fault, word)) return false;
  pod.phase = phase_of(word);
  return true;
}

// **Source:** core/v1 generated.proto, PodStatus.
bool read_status(const Value& value, Fault& fault, Pod& pod, PodParts& parts) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_phase(field, fault, pod) || fault.in("phase");
      case 2:
        return read_item(field, fault, parts.conditions, read_condition) || fault.in("conditions");
      case 3:
        return read_text(field, fault, pod.status_message) || fault.in("message");
      case 4:
        return read_name(field, fault, pod.status_reason) || fault.in("reason");
      case 8:
        return read_container_report(field, fault, parts.reports[0]) || fault.in("containerStatuses");
      case 10:
        return read_container_report(field, fault, parts.reports[1]) || fault.in("initContainerStatuses");
      case 13:
        return read_container_report(field, fault, parts.reports[2]) || fault.in("ephemeralContainerStatuses");
      case 15:
        return read_item(field, fault, parts.status_claims, read_status_claim) || fault.in("resourceClaimStatuses");
      case 18:
        return read_extended_claim(field, fault, parts.extended_claim) || fault.in("extendedResourceClaimStatus");
      default:
        return true;
    }
  });
}

}  // namespace

bool read_pod(std::string_view message, Fault& fault, const KeptFields& kept, Pod& pod) {
  PodParts parts;
  parts.conditions.reserve(kUsualConditions);
  SchedulingReader scheduling;
  const bool read = read_root(message, fault, kept, Kind::Pod, pod.meta, [&](std::uint32_t tag, const Value& value) {
    if (tag == 2) return read_spec(value, fault, pod, parts, scheduling) || fault.in("spec");
    if (tag == 3) return read_status(value, fault, pod, parts) || fault.in("status");
    return true;
  });
  parts.scheduling = scheduling.take();
  return read && finish_pod(parts, kept, fault, pod);
}

}  // namespace dhc::k8s::proto
