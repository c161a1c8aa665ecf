#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/model/allocated_status.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/pod_requests.h"
#include "k8s-client/model/reading.h"

namespace dhc::k8s {

/// Room for those that the kubelet and the scheduler write.
inline constexpr std::size_t kUsualConditions = 8;

/// What a pod's record is put together from, once all of it is known: the fields may come in any order.
struct PodParts {
  std::vector<ResourceAmount> container_requests;
  std::vector<ContainerImage> images;  ///< Of the containers that ask for devices.
  std::vector<InitRequest> init_requests;
  std::vector<PodClaim> spec_claims;
  std::vector<PodClaim> status_claims;
  std::string extended_claim;
  std::vector<std::string> shown_fields;  ///< Of the pod itself, in its downwardAPI volumes.
  SchedulingTerms scheduling;
  std::vector<Condition> conditions;
  std::array<ContainerReports, 3> reports;  ///< Containers, init, ephemeral.
};

/// The phase that the API's word names.
[[nodiscard]] PodPhase phase_of(std::string_view word);

/// Notes a hostPath through which device plugins and DRA drivers register at the kubelet.
void note_plugin_folder(std::string_view path, Pod& pod);

/// Puts the record together. False, with the fault set, if what the containers ask for does not add up.
[[nodiscard]] bool finish_pod(PodParts& parts, const KeptFields& kept, Fault& fault, Pod& pod);

}  // namespace dhc::k8s
