#pragma once
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "domain/history/device_record.h"

namespace dhc {

/// One device as version 1 of the state kept it: 0.1.0, in the ConfigMap `device-health-state`. Nothing if a member is
/// not one that it wrote.
[[nodiscard]] std::optional<DeviceRecord> read_earlier_record(const nlohmann::ordered_json& json, bool& departed);

}  // namespace dhc
