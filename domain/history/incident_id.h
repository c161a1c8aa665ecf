#pragma once
#include <string>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/rfc3339.h"
#include "domain/contract/device_key.h"
#include "domain/history/device_record.h"

namespace dhc {

/// A name for one incident of one device, the same after every restart: sixteen hexadecimal digits. The webhook's
/// `incident`, and the `{incident}` of what a node is handed over by.
[[nodiscard]] inline std::string incident_id(const DeviceKey& key, WallTime opened_at) {
  return fmt::format("{:016x}", stable_hash(to_string(key) + "|" + format_rfc3339(opened_at)));
}

/// Of the incident of this device that goes on; empty: none does.
[[nodiscard]] inline std::string incident_id(const DeviceRecord& record) {
  const auto* facts = record.incident.facts();
  return facts == nullptr ? std::string() : incident_id(record.key, named_at(*facts));
}

}  // namespace dhc
