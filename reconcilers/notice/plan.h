#pragma once
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "reconcilers/notice/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

using NoticeAction = std::variant<ApplyCondition, EmitEvent>;

/// A configuration that could not be read, for as long as it stands.
struct RejectedConfig {
  std::string why;
  std::optional<Subject> source;
  Moment since;
};

/// Decides which pod conditions and Events are written, and says what is wrong with nodes and brakes. `verdicts` are
/// those of the other reconcilers: they become Events, one for each subject and reason in a while.
[[nodiscard]] Planned<NoticeAction> plan(const PlanInput& input, std::span<const Verdict> verdicts,
                                         const std::optional<RejectedConfig>& rejected);

}  // namespace dhc::notice
