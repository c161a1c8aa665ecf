#pragma once
#include <stop_token>
#include <string_view>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/status/action.h"

namespace dhc::status {

/// Sends the status once.
[[nodiscard]] Status execute(const WriteStatus& action, std::string_view instance, const k8s::Client& client,
                             std::stop_token stop);

}  // namespace dhc::status
