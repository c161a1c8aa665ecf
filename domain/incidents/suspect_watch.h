#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/contract/subject.h"
#include "domain/findings/affected_pod.h"
#include "domain/findings/suspects.h"
#include "domain/incidents/incident_store.h"

namespace dhc {

/// Tells the suspects which incidents have just opened, and under whose pods.
void note_onsets(Suspects& suspects, const std::set<DeviceKey>& opened, const IncidentStore& incidents,
                 const World& world);

/// What a judgement at this moment is made of: who holds a bad device, or has one whose incident goes on, and who
/// vouches for a workload or a node.
[[nodiscard]] SuspectHearing hearing_of(const Suspects& suspects, const IncidentStore& incidents,
                                        const std::vector<AffectedPod>& affected_pods, const World& world,
                                        const Policy& policy, const Now& now);

/// Whether suspects alone hold the device: what is said of it then says nothing about the device.
[[nodiscard]] bool is_with_suspects(const Suspects& suspects, const DeviceKey& key, const World& world);

/// Who is suspected because of what the pod does, and why.
struct SuspectedAs {
  std::string who;  ///< Its workload, or else an image that it runs.
  const Suspicion* suspicion = nullptr;
};

/// As whom the pod is suspected of breaking devices of this driver or resource, by its workload or by what its
/// containers run that hold devices; none: it is not.
[[nodiscard]] std::optional<SuspectedAs> suspected_as(const Suspects& suspects, const k8s::Pod& pod,
                                                      const std::string& scope, const World& world);

/// The workloads under which devices broke by what is said against the suspect: itself, or those that ran the image,
/// as far as they have pods; each once, sorted. Of a node or release there is none.
[[nodiscard]] std::vector<std::string> workloads_behind(const Suspects& suspects, const OwnerInScope& who,
                                                        const World& world);

/// Whether suspected workloads and images hold all of the node's devices of the driver or resource that are held: what
/// breaks there says nothing of the node.
[[nodiscard]] bool is_full_of_suspects(const Suspects& suspects, std::string_view node, const std::string& scope,
                                       const World& world);

/// What is said of a suspected workload or image, node or release.
[[nodiscard]] std::string words_of_suspicion(const std::string& who, const Suspicion& suspicion);

}  // namespace dhc
