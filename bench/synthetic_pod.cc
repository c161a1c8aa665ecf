#include "bench/synthetic_pod.h"

#include <nlohmann/json.hpp>

namespace dhc::bench {

namespace {

using nlohmann::ordered_json;

std::string uid_of(int number) {
  const auto digits = std::to_string(number);
  return "40a44c2a-56f2-4107-99f8-" + std::string(12 - digits.size(), '0') + digits;
}

ordered_json managed_fields() {
  auto entries = ordered_json::array();
  for (const auto* manager : {"kube-controller-manager", "kubelet", "kube-scheduler"}) {
    auto fields = ordered_json::object();
    for (int i = 0; i < 45; ++i) fields["f:field-number-" + std::to_string(i)] = {{"f:name", ordered_json::object()}};
    entries.push_back({{"manager", manager},
                       {"operation", "Update"},
                       {"apiVersion", "v1"},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", fields}});
  }
  return entries;
}

ordered_json container(bool with_device) {
  ordered_json limits = {{"cpu", "4"}, {"memory", "16Gi"}};
  if (with_device) limits["nvidia.com/gpu"] = "1";
  ordered_json env = ordered_json::array();
  for (int i = 0; i < 20; ++i)
    env.push_back(
        {{"name", "VARIABLE_" + std::to_string(i)}, {"value", "a value of some length " + std::to_string(i)}});
  return {{"name", "main"},
          {"image", "registry.example/training/image:v1.2.3"},
          {"command", {"python3", "-m", "train", "--config", "/etc/train/config.yaml"}},
          {"env", env},
          {"resources", {{"limits", limits}, {"requests", limits}}},
          {"volumeMounts",
           {{{"name", "kube-api-access"},
             {"readOnly", true},
             {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"}}}},
          {"terminationMessagePath", "/dev/termination-log"},
          {"imagePullPolicy", "IfNotPresent"}};
}

ordered_json container_status(const SyntheticPod& pod) {
  ordered_json status = {
      {"name", "main"},
      {"state", {{"running", {{"startedAt", "2026-11-20T18:23:16Z"}}}}},
      {"lastState", ordered_json::object()},
      {"ready", true},
      {"restartCount", 0},
      {"image", "registry.example/training/image:v1.2.3"},
      {"imageID", "sha256:63de12fef1df5cb123a9bbf1cd57050cae50d17aaae9a9325cdfab314fd0a2c9"},
      {"containerID", "containerd://4b42e03633e25cf34c564e2bd4faa40f8e49b15beb16c8a5c25d766a02e7c16b"}};
  if (pod.with_device) {
    status["allocatedResourcesStatus"] = {
        {{"name", "nvidia.com/gpu"},
         {"resources", {{{"resourceID", "GPU-" + uid_of(pod.number)}, {"health", "Healthy"}}}}}};
  }
  return status;
}

ordered_json metadata(const SyntheticPod& pod) {
  const auto name = "train-" + std::to_string(pod.number);
  return {
      {"name", name + "-x7k2p"},
      {"generateName", name + "-"},
      {"namespace", "team-" + std::to_string(pod.number % 50)},
      {"uid", uid_of(pod.number)},
      {"resourceVersion", std::to_string(1'000'000 + pod.number)},
      {"creationTimestamp", "2026-11-20T18:23:16Z"},
      {"labels",
       {{"app", "train"},
        {"batch.kubernetes.io/job-name", name},
        {"pod-template-hash", "5c79c8697c"},
        {"team", "vision"}}},
      {"annotations",
       {{"cni.example/status", std::string(300, 'x')}, {"kubectl.kubernetes.io/restartedAt", "2026-11-20T18:23:16Z"}}},
      {"ownerReferences",
       {{{"apiVersion", "batch/v1"},
         {"kind", "Job"},
         {"name", name},
         {"uid", uid_of(500'000 + pod.number)},
         {"controller", true},
         {"blockOwnerDeletion", true}}}},
      {"managedFields", managed_fields()}};
}

}  // namespace

std::string to_json(const SyntheticPod& pod) {
  ordered_json conditions = ordered_json::array();
  for (const auto* type : {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    conditions.push_back({{"type", type},
                          {"status", "True"},
                          {"lastProbeTime", nullptr},
                          {"lastTransitionTime", "2026-11-20T18:23:16Z"}});
  }
  const ordered_json object = {{"kind", "Pod"},
                               {"apiVersion", "v1"},
                               {"metadata", metadata(pod)},
                               {"spec",
                                {{"containers", {container(pod.with_device)}},
                                 {"restartPolicy", "Never"},
                                 {"terminationGracePeriodSeconds", 30},
                                 {"nodeName", "gpu-node-" + std::to_string(pod.number / 8)},
                                 {"schedulerName", "default-scheduler"},
                                 {"priority", 0}}},
                               {"status",
                                {{"phase", "Running"},
                                 {"conditions", conditions},
                                 {"podIP", "10.244.7.38"},
                                 {"startTime", "2026-11-20T18:23:16Z"},
                                 {"containerStatuses", {container_status(pod)}},
                                 {"qosClass", "Burstable"}}}};
  return object.dump();
}

}  // namespace dhc::bench
