#pragma once
#include <nlohmann/json_fwd.hpp>

#include "domain/limits/cap_book.h"

namespace dhc {

/// What counts against `caps.ownerDevicesPerDay`, as the state ConfigMap keeps it: an entry for each workload and
/// place.
[[nodiscard]] nlohmann::ordered_json workloads_json(const WorkloadBook& book);

/// And one entry back; false: it is none that we wrote, and nothing of it is kept.
[[nodiscard]] bool read_workload(const nlohmann::ordered_json& entry, CapBook& book);

}  // namespace dhc
