#include "k8s-client/model/decode_pod.h"

#include <utility>

#include "k8s-client/model/allocated_status.h"
#include "k8s-client/model/decode_meta.h"
#include "k8s-client/model/decode_scheduling.h"
#include "k8s-client/model/pod_parts.h"
#include "k8s-client/model/pod_requests.h"

namespace dhc::k8s {

namespace {

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

bool read_shown_field(JsonValue value, Fault& fault, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "fieldRef") return true;
    const bool read = each_field(field, fault, [&](std::string_view part, JsonValue path) {
      return part != "fieldPath" || read_text(path, fault, shown.emplace_back()) || fault.in(part);
    });
    return read || fault.in(key);
  });
}

bool read_downward(JsonValue value, Fault& fault, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "items") return true;
    return each_item(field, fault, [&](JsonValue item) { return read_shown_field(item, fault, shown); }) ||
           fault.in(key);
  });
}

bool read_projected(JsonValue value, Fault& fault, std::vector<std::string>& shown) {
  const auto read_source = [&](JsonValue source) {
    return each_field(source, fault, [&](std::string_view key, JsonValue field) {
      return key != "downwardAPI" || read_downward(field, fault, shown) || fault.in(key);
    });
  };
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "sources" || each_item(field, fault, read_source) || fault.in(key);
  });
}

bool read_volume(JsonValue value, Fault& fault, Pod& pod, std::vector<std::string>& shown) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "downwardAPI") return read_downward(field, fault, shown) || fault.in(key);
    if (key == "projected") return read_projected(field, fault, shown) || fault.in(key);
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

bool read_volumes(JsonValue value, Fault& fault, Pod& pod, std::vector<std::string>& shown) {
  pod.kubelet_plugin = false;
  pod.plugin_folders.clear();
  shown.clear();
  return each_item(value, fault, [&](JsonValue item) { return read_volume(item, fault, pod, shown); });
}

bool read_scheduling_group(JsonValue value, Fault& fault, SharedText& group) {
  group.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "podGroupName" || read_name(field, fault, group) || fault.in(key);
  });
}

bool read_spec(JsonValue value, Fault& fault, Pod& pod, PodParts& parts) {
  pod.node_name.clear();
  pod.pod_group.clear();
  pod.grace_period_seconds.reset();
  pod.kubelet_plugin = false;
  pod.plugin_folders.clear();
  parts.container_requests.clear();
  parts.images.clear();
  parts.init_requests.clear();
  parts.spec_claims.clear();
  parts.scheduling = {};
  parts.shown_fields.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "nodeName") return read_name(field, fault, pod.node_name);
      if (key == "terminationGracePeriodSeconds") return read_integer(field, fault, pod.grace_period_seconds);
      if (key == "containers") return read_containers(field, fault, parts.container_requests, parts.images);
      if (key == "initContainers") return read_list(field, fault, parts.init_requests, read_init_request);
      if (key == "resourceClaims") return read_list(field, fault, parts.spec_claims, read_spec_claim);
      if (key == "volumes") return read_volumes(field, fault, pod, parts.shown_fields);
      if (key == "schedulingGroup") return read_scheduling_group(field, fault, pod.pod_group);
      return read_scheduling_field(key, field, fault, parts.scheduling);
    };
    return read() || fault.in(key);
  });
}

bool read_phase(JsonValue value, Fault& fault, Pod& pod) {
  std::string word;
  if (!read_name(value, fault, word)) return false;
  pod.phase = phase_of(word);
  return true;
}

bool read_pod_conditions(JsonValue value, Fault& fault, std::vector<Condition>& conditions) {
  conditions.clear();
  conditions.reserve(kUsualConditions);
  return each_item(value, fault, [&](JsonValue item) {
    Condition condition;
    if (!read_condition(item, fault, condition)) return false;
    conditions.push_back(std::move(condition));
    return true;
  });
}

bool read_status(JsonValue value, Fault& fault, Pod& pod, PodParts& parts) {
  pod.phase = PodPhase::Unknown;
  pod.status_reason.clear();
  pod.status_message.clear();
  parts.conditions.clear();
  parts.status_claims.clear();
  parts.extended_claim.clear();
  for (auto& report : parts.reports) report = {};
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    const auto read = [&] {
      if (key == "phase") return read_phase(field, fault, pod);
      if (key == "reason") return read_name(field, fault, pod.status_reason);
      if (key == "message") return read_text(field, fault, pod.status_message);
      if (key == "conditions") return read_pod_conditions(field, fault, parts.conditions);
      if (key == "containerStatuses") return read_container_reports(field, fault, parts.reports[0]);
      if (key == "initContainerStatuses") return read_container_reports(field, fault, parts.reports[1]);
      if (key == "ephemeralContainerStatuses") return read_container_reports(field, fault, parts.reports[2]);
      if (key == "resourceClaimStatuses") return read_list(field, fault, parts.status_claims, read_spec_claim);
      if (key == "extendedResourceClaimStatus") return read_extended_claim(field, fault, parts.extended_claim);
      return true;
    };
    return read() || fault.in(key);
  });
}

}  // namespace

bool read_pod(JsonObject root, Fault& fault, const KeptFields& kept, Pod& pod) {
  PodParts parts;
  const bool read = read_root(root, fault, kept, Kind::Pod, pod.meta, [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_spec(value, fault, pod, parts);
    if (key == "status") return read_status(value, fault, pod, parts);
    return true;
  });
  return read && finish_pod(parts, kept, fault, pod);
}

}  // namespace dhc::k8s
