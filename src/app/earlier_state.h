#pragma once
#include <optional>

#include "app/message.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// What a delivery of the watch of 0.1.0's state ConfigMap means; nothing if it says nothing about it.
[[nodiscard]] std::optional<EarlierState> read_earlier_state(const k8s::Delivery& delivery);

}  // namespace dhc
