#pragma once
#include <array>
#include <string_view>

namespace dhc {

/// One resource whose objects own pods.
struct KnownOwner {
  std::string_view group;
  std::string_view resource;
};

/// Kinds that own pods with devices, or such owners, and are not watched: `manifests/base/rbac-owners.yaml` lets us
/// read each of them, and the start names those that we may not. **Source:** the projects' own CRDs.
inline constexpr std::array<KnownOwner, 34> kKnownOwners = {
    KnownOwner{"", "pods"},
    KnownOwner{"", "replicationcontrollers"},
    KnownOwner{"apps", "deployments"},
    KnownOwner{"apps.kruise.io", "clonesets"},
    KnownOwner{"apps.kruise.io", "statefulsets"},
    KnownOwner{"argoproj.io", "cronworkflows"},
    KnownOwner{"argoproj.io", "rollouts"},
    KnownOwner{"argoproj.io", "workflows"},
    KnownOwner{"batch", "cronjobs"},
    KnownOwner{"batch.volcano.sh", "jobs"},
    KnownOwner{"jobset.x-k8s.io", "jobsets"},
    KnownOwner{"kubeflow.org", "jaxjobs"},
    KnownOwner{"kubeflow.org", "mpijobs"},
    KnownOwner{"kubeflow.org", "notebooks"},
    KnownOwner{"kubeflow.org", "paddlejobs"},
    KnownOwner{"kubeflow.org", "pytorchjobs"},
    KnownOwner{"kubeflow.org", "tfjobs"},
    KnownOwner{"kubeflow.org", "xgboostjobs"},
    KnownOwner{"kubevirt.io", "virtualmachineinstances"},
    KnownOwner{"kubevirt.io", "virtualmachines"},
    KnownOwner{"leaderworkerset.x-k8s.io", "leaderworkersets"},
    KnownOwner{"ray.io", "rayclusters"},
    KnownOwner{"ray.io", "rayjobs"},
    KnownOwner{"ray.io", "rayservices"},
    KnownOwner{"serving.knative.dev", "configurations"},
    KnownOwner{"serving.knative.dev", "revisions"},
    KnownOwner{"serving.knative.dev", "services"},
    KnownOwner{"serving.kserve.io", "inferenceservices"},
    KnownOwner{"sparkoperator.k8s.io", "scheduledsparkapplications"},
    KnownOwner{"sparkoperator.k8s.io", "sparkapplications"},
    KnownOwner{"tekton.dev", "pipelineruns"},
    KnownOwner{"tekton.dev", "taskruns"},
    KnownOwner{"trainer.kubeflow.org", "trainjobs"},
    KnownOwner{"workload.codeflare.dev", "appwrappers"}};

static_assert(!kKnownOwners.back().resource.empty());

}  // namespace dhc
