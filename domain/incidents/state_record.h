#pragma once
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "domain/history/device_record.h"

namespace dhc {

/// One device as the state ConfigMap keeps it, as JSON; `departed`: it has left its place.
[[nodiscard]] std::string state_json(const DeviceRecord& record, bool departed);

/// And back; nothing if a member is not one that we wrote.
[[nodiscard]] std::optional<DeviceRecord> read_state_record(const nlohmann::ordered_json& json, bool& departed);

/// Whether a key that was read has all parts of its kind, and no others.
[[nodiscard]] bool is_whole(const DeviceKey& key);

/// 0.1.0 wrote a node that has an incident of its own as a device whose ID is a sentence.
void translate_node(DeviceKey& key);

}  // namespace dhc
