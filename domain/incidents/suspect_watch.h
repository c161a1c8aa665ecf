#pragma once
#include <map>
#include <set>
#include <string>
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

/// What a judgement at this moment is made of: who holds a bad device, and who vouches for a workload.
[[nodiscard]] SuspectHearing hearing_of(const Suspects& suspects, const std::vector<AffectedPod>& affected_pods,
                                        const World& world, const Policy& policy, const Now& now);

/// Whether suspects alone hold the device: what is said of it then says nothing about the device.
[[nodiscard]] bool is_with_suspects(const Suspects& suspects, const DeviceKey& key, const World& world);

/// What is said of a suspected workload.
[[nodiscard]] std::string words_of_suspicion(const std::string& workload, const Suspicion& suspicion);

}  // namespace dhc
