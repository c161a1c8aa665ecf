#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/wake.h"
#include "domain/contract/notice_text.h"
#include "reconcilers/notice/next_steps.h"
#include "reconcilers/shared/gangs.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// What one pod is told: of its eviction, or that none follows. None: no policy of its bad devices gives a notice.
/// `open`: the affected pods of one pod whose incident is open, under enforcing policies. `wake`: when time alone would
/// change it.
[[nodiscard]] std::optional<Notice> notice_for(const std::vector<const AffectedPod*>& open, const PlanInput& input,
                                               const NextSteps& next, Wake& wake);

/// What a pod of the gang is told that goes with the one that is told `other`.
[[nodiscard]] Notice notice_with(const AffectedPod& member, const GangUnit& unit, const Notice& other,
                                 const PlanInput& input, Wake& wake);

/// What a pod is told whose devices are well again: nothing if it was told of no eviction.
[[nodiscard]] std::optional<Notice> notice_of_recovery(const k8s::Pod& pod, const PlanInput& input);

/// The annotation as it is to be written; empty: none. Another client's is left alone.
[[nodiscard]] std::string annotation_of(const std::optional<Notice>& notice, const k8s::Pod& pod,
                                        const PlanInput& input);

/// Whether the pod shows this annotation, but for its message.
[[nodiscard]] bool shows_but_for_words(const std::string& annotation, const k8s::Pod& pod);

}  // namespace dhc::notice
