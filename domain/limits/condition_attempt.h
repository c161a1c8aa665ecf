#pragma once
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/limits/attempt.h"
#include "k8s-client/model/pod.h"

namespace dhc {

/// What a write to a pod's status says of its devices.
struct PodWords {
  std::optional<bool> condition;  ///< Of our condition; none: the pod is to have none.
  std::string message{};
  std::string notice{};  ///< The annotation; empty: nothing is asked of it.
};

/// One pod whose condition or notice we have written; in vain if the pod did not show it when the next was due.
struct ConditionAttempt : Attempt {
  PodWords said{};
};

/// An admission webhook or another client takes it away each time.
[[nodiscard]] bool is_taken_away(const ConditionAttempt& attempt, const k8s::Pod& pod);

/// It is on its way, at the pod as the World shows it. `heard_at`: the last word of the watch of pods.
void note_sent(ConditionAttempt& attempt, const k8s::Pod& pod, PodWords said, std::optional<MonoTime> heard_at,
               const Now& now);

/// Whether just this is taken away, whatever its words; a recovery, or what ends it, is something else.
[[nodiscard]] bool is_rare(const ConditionAttempt& attempt, const k8s::Pod& pod, const PodWords& wanted);

}  // namespace dhc
