#pragma once
#include <stop_token>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/taint/action.h"
#include "reconcilers/taint/answer.h"

namespace dhc::taint {

/// Each sends one request once; its preconditions make it safe to repeat. Deleting what is gone is done.
[[nodiscard]] StoredRule execute(const ApplyRule& action, const k8s::Client& client, std::stop_token stop);
[[nodiscard]] Status execute(const DeleteRule& action, const k8s::Client& client, std::stop_token stop);
[[nodiscard]] Status execute(const PatchNodeTaint& action, const k8s::Client& client, std::stop_token stop);

}  // namespace dhc::taint
