#include "tests/support/core/samples.h"

#include <nlohmann/json.hpp>

namespace dhc::test {

namespace {

using k8s::Kind;

constexpr auto kMeta = R"({
  "namespace": "ns", "name": "n", "uid": "u", "resourceVersion": "7",
  "creationTimestamp": "2026-11-20T18:23:16Z", "deletionTimestamp": "2026-11-20T18:24:16Z", "deletionGracePeriodSeconds": 30,
  "labels": {"app": "infer"}, "annotations": {"device-health.io/brake-release": "now"},
  "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju", "controller": true}]
})";

constexpr auto kPod = R"({
  "spec": {
    "nodeName": "node-a", "terminationGracePeriodSeconds": 5,
    "containers": [{"name": "main", "image": "registry.example.com/train:7", "resources": {"limits": {"example.com/gpu": "2"}}}],
    "initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"example.com/gpu": 1}}}],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]
  },
  "status": {
    "phase": "Running", "reason": "Because",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "R", "message": "M",
                    "lastTransitionTime": "2026-11-20T18:23:16Z"}],
    "containerStatuses": [{"name": "main", "restartCount": 2, "state": {"terminated": {"exitCode": 1}}, "allocatedResourcesStatus": [
      {"name": "example.com/gpu", "resources": [{"resourceID": "gpu-0", "health": "Unhealthy", "message": "Xid 79"}]}]}],
    "initContainerStatuses": [{"allocatedResourcesStatus": [
      {"name": "example.com/gpu", "resources": [{"resourceID": "gpu-1", "health": "Healthy"}]},
      {"name": "claim:gpu", "resources": [{"resourceID": "gpu-3", "health": "Healthy"}]}]}],
    "ephemeralContainerStatuses": [{"allocatedResourcesStatus": [
      {"name": "example.com/gpu", "resources": [{"resourceID": "gpu-2", "health": "Healthy"}]}]}],
    "resourceClaimStatuses": [{"name": "other", "resourceClaimName": "other-claim"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "extended-claim"}
  }
})";

constexpr auto kClaim = R"({
  "status": {
    "allocation": {"devices": {"results": [{
      "request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0", "adminAccess": true,
      "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}],
      "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}]}},
    "reservedFor": [{"apiGroup": "g", "resource": "pods", "name": "p", "uid": "pu"}],
    "devices": [{"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0", "conditions": [
      {"type": "Ready", "status": "False", "reason": "R", "message": "M", "lastTransitionTime": "2026-11-20T18:23:16Z"}]}]
  }
})";

constexpr auto kSlice = R"({
  "spec": {"driver": "gpu.example.com", "pool": {"name": "node-a", "generation": 3}, "nodeName": "node-a",
           "devices": [
    {"name": "gpu-0", "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
     "attributes": {"uuid": {"string": "GPU-1"}, "model": {"string": "A"}}},
    {"name": "gpu-1", "basic": {"taints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
                                "attributes": {"uuid": {"string": "GPU-2"}}}}]}
})";

constexpr auto kNode = R"({
  "spec": {"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
  "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "M",
                             "lastTransitionTime": "2026-11-20T18:23:16Z"},
                            {"type": "Drained", "status": "True"}],
             "nodeInfo": {"bootID": "b", "kubeletVersion": "v1.37.1"}, "capacity": {"example.com/gpu": "4"}, "allocatable": {"example.com/gpu": "3"}}
})";

constexpr auto kRule = R"({
  "spec": {"deviceSelector": {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"},
           "taint": {"key": "device-health.io/unhealthy", "value": "v", "effect": "NoSchedule"}},
  "status": {"conditions": [{"type": "EvictionInProgress", "status": "False", "observedGeneration": 2,
                             "reason": "OtherEffect", "message": "M"}]}
})";

constexpr auto kJob = R"({
  "spec": {
    "backoffLimit": 3, "backoffLimitPerIndex": 1, "maxFailedIndexes": 2, "completions": 8, "parallelism": 4,
    "completionMode": "Indexed", "suspend": true, "manualSelector": true, "podReplacementPolicy": "Failed",
    "managedBy": "example.com/controller", "template": {"spec": {"restartPolicy": "OnFailure"}},
    "podFailurePolicy": {"rules": [
      {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
      {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
  },
  "status": {"failed": 1, "succeeded": 2, "active": 3, "terminating": 4, "failedIndexes": "1,3-5",
             "uncountedTerminatedPods": {"failed": ["f"], "succeeded": ["s"]},
             "conditions": [{"type": "Suspended", "status": "True", "reason": "R", "message": "M",
                             "lastTransitionTime": "2026-11-20T18:23:16Z"}]}
})";

constexpr auto kBudget = R"({
  "spec": {"selector": {"matchLabels": {"a": "b"},
                        "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]},
           "unhealthyPodEvictionPolicy": "AlwaysAllow"},
  "status": {"observedGeneration": 2, "disruptionsAllowed": 3, "currentHealthy": 5, "desiredHealthy": 2}
})";

constexpr auto kPodGroup = R"({"spec": {"disruptionMode": {"all": {}}}})";

constexpr auto kConfigMap = R"({"data": {"policy.yaml": "a: b"}})";

constexpr auto kLease = R"({"spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "leaseTransitions": 3,
  "acquireTime": "2026-11-20T18:23:16.000000Z", "renewTime": "2026-11-20T18:24:16.000000Z"}})";

const char* body_of(Kind kind) {
  switch (kind) {
    case Kind::Pod:
      return kPod;
    case Kind::ResourceClaim:
      return kClaim;
    case Kind::ResourceSlice:
      return kSlice;
    case Kind::Node:
      return kNode;
    case Kind::DeviceTaintRule:
      return kRule;
    case Kind::PodDisruptionBudget:
      return kBudget;
    case Kind::PodGroup:
      return kPodGroup;
    case Kind::ConfigMap:
      return kConfigMap;
    case Kind::Lease:
      return kLease;
    case Kind::Job:
      return kJob;
    case Kind::Namespace:
    case Kind::ReplicaSet:
    case Kind::StatefulSet:
      break;
  }
  return "{}";
}

}  // namespace

std::vector<Kind> every_kind() {
  std::vector<Kind> kinds(k8s::kAllKinds.begin(), k8s::kAllKinds.end());
  kinds.push_back(Kind::Lease);
  return kinds;
}

std::string full_sample(Kind kind) { return full_sample(kind, "n", "u"); }

std::string full_sample(Kind kind, const std::string& name, const std::string& uid) {
  auto object = nlohmann::ordered_json::parse(body_of(kind));
  object["kind"] = std::string(k8s::to_string(kind));
  object["metadata"] = nlohmann::ordered_json::parse(kMeta);
  if (kind == Kind::DeviceTaintRule || kind == Kind::PodDisruptionBudget) object["metadata"]["generation"] = 2;
  object["metadata"]["name"] = name;
  object["metadata"]["uid"] = uid;
  return object.dump();
}

std::string list_of(const std::vector<std::string>& items) {
  std::string text = R"({"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)";
  for (const auto& item : items) text.append(&item == &items.front() ? "" : ",").append(item);
  return text + "]}";
}

}  // namespace dhc::test
