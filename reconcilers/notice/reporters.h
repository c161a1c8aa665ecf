#pragma once
#include <cstddef>
#include <vector>

#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// How many verdicts of a kind about drivers and resources there are at most.
inline constexpr std::size_t kMostReporters = 50;

/// A verdict for each driver and device plugin whose devices pods have held for `kSpeakerGrace` and that has said
/// nothing about the health of any since this process began; and one for each of whose devices no kubelet says
/// anything, or none of those below 1.36. A policy with mode off that names it first is answer enough.
[[nodiscard]] Planned<Verdict> find_silent_reporters(const PlanInput& input);

/// A verdict for each driver and resource of whose devices a word other than Healthy, Unhealthy and Unknown is said
/// now that no policy for their pods names. Words come from a kubelet: few of them are told.
[[nodiscard]] std::vector<Verdict> find_other_words(const PlanInput& input);

}  // namespace dhc::notice
