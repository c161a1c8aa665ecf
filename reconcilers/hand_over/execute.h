#pragma once
#include <stop_token>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/hand_over/action.h"

namespace dhc::hand_over {

/// Sends one request once; it may be repeated.
[[nodiscard]] Status execute(const ApplyNodeConditions& action, const k8s::Client& client, std::stop_token stop);

}  // namespace dhc::hand_over
