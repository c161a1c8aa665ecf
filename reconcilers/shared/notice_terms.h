#pragma once
#include <optional>

#include "reconcilers/shared/notice_answer.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// How long a pod that is told before its eviction (`evict.notice`) may stay, and what it has answered.
struct NoticeTerms : AnsweredNotice {
  GivenNotice given = {};     ///< What it was told, whatever it has answered.
  bool is_begun = false;      ///< It has been told, or its notice is on its way: `given.at` is no longer now.
  bool is_contested = false;  ///< The annotation belongs to another client: the program reads that one's words.
};

/// The terms of an affected pod; none: its policy gives no notice, or the incident is not open.
///
/// The deadline counts from when the pod was told. The condition remembers that, and not the notice, which a tenant may
/// change; it lies between the incident's opening and now, whatever is read. Where nothing is written to pods (observe)
/// it counts from the opening. A pod that goes with another has the time of that one, and answers for itself.
[[nodiscard]] std::optional<NoticeTerms> notice_terms(const AffectedPod& affected, const PlanInput& input);

/// When the incident opened, in whole seconds; never later after a restart, which reads whole seconds in the condition.
[[nodiscard]] WallTime opened_at(const AffectedPod& affected);

/// When the policy wants the pod gone, in whole seconds as the condition remembers its beginning: the same after a
/// restart.
[[nodiscard]] WallTime eviction_due_at(const AffectedPod& affected);

}  // namespace dhc
