#pragma once
#include <nlohmann/json_fwd.hpp>

#include "base/json_writer.h"
#include "domain/limits/cap_book.h"

namespace dhc {

/// What counts against `caps.ownerDevicesPerDay`, as the state ConfigMap keeps it: an entry for each workload and
/// place, one after the other.
void write_workloads(JsonWriter& json, const WorkloadBook& book);

/// And one entry back; false: it is none that we wrote, and nothing of it is kept.
[[nodiscard]] bool read_workload(const nlohmann::ordered_json& entry, CapBook& book);

}  // namespace dhc
