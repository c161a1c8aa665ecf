#pragma once
#include <optional>

#include "app/access_review.h"
#include "app/policy_desk.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// What a delivery about the configuration's ConfigMap means; nothing if it is about another object. A ConfigMap
/// that does not exist is an error that says how to make it.
[[nodiscard]] std::optional<PolicyRead> read_policy_map(const k8s::Delivery& delivery, const ConfigMapName& name);

}  // namespace dhc
