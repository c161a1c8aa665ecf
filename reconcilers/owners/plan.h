#pragma once
#include <set>
#include <span>
#include <string>

#include "reconcilers/owners/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::owners {

/// At most so many owners are read in a minute.
inline constexpr std::int64_t kReadsPerMinute = 60;

/// Which owners are read now: those that a verdict waits for (`OptOutUnknown` of a pod, or how a Job's pods ended), and
/// those that have opted out, which may have changed their mind. Each with a back-off, one of a namespace at a time;
/// where the minute's reads do not suffice the namespace goes first whose last read is the longest ago, so that no
/// tenant's owners keep another's waiting.
/// `pods`: UIDs of further pods whose owners are waited for.
[[nodiscard]] Planned<ReadOwner> plan(const PlanInput& input, std::span<const Verdict> verdicts,
                                      const std::set<std::string>& pods = {});

}  // namespace dhc::owners
