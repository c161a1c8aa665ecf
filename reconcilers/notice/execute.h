#pragma once
#include <stop_token>
#include <string_view>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/notice/action.h"

namespace dhc::notice {

/// Applies the condition once. Conflict: another pod has the name now. Contested: another field manager owns it. Safe
/// to repeat: the same apply changes nothing.
[[nodiscard]] Status execute(const ApplyCondition& action, const k8s::Client& client, std::stop_token stop);

/// Creates the Event once; one that is already there counts as done, because its name comes from its content.
[[nodiscard]] Status execute(const EmitEvent& action, std::string_view reporting_instance, const k8s::Client& client,
                             std::stop_token stop);

}  // namespace dhc::notice
