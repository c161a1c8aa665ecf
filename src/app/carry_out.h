#pragma once
#include <stop_token>
#include <string_view>

#include "app/message.h"
#include "k8s-client/client.h"

namespace dhc {

/// Carries one action out by its reconciler's `execute`: one attempt, one Outcome. May block for 75 s.
/// `reporting_instance` stands in Events: our pod's name or the host's.
[[nodiscard]] Outcome carry_out(Action action, const k8s::Client& client, std::string_view reporting_instance,
                                const std::stop_token& stop);

}  // namespace dhc
