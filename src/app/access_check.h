#pragma once
#include <chrono>
#include <stop_token>
#include <vector>

#include "app/access_review.h"
#include "app/log.h"
#include "base/now.h"
#include "k8s-client/client.h"

namespace dhc {

/// Asks the server once for every verb that we need, and logs one line for each that is missing. Only for people: what
/// is forbidden is found out by doing it, too. False if not all could be asked; a line says so if `patience` was not
/// enough. Blocks for 2 s longer than that at most.
[[nodiscard]] bool check_access(const std::vector<NeededVerb>& verbs, const k8s::Client& client, Log& log,
                                const std::stop_token& stop, Millis patience = std::chrono::minutes(1));

/// Asks the server for its version, and warns where its kubelets report nothing by default, and, where we may act, of
/// what is known to be wrong with DeviceTaintRules in it. Nothing is said of a server that does not answer. Blocks for
/// 2 s at most.
void check_version(const k8s::Client& client, Mode mode, Log& log, const std::stop_token& stop);

}  // namespace dhc
