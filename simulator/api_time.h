#pragma once
#include <string>
#include <string_view>

#include "base/now.h"

namespace dhc::sim {

/// `2026-11-20T18:23:16Z`, as Kubernetes writes Time. **Source:** apimachinery meta/v1 Time.
[[nodiscard]] std::string api_time(WallTime when);

/// `2026-11-20T18:23:16.000000Z`, as Kubernetes writes MicroTime.
[[nodiscard]] std::string api_micro_time(WallTime when);

/// True if `text` is a MicroTime that an API server accepts: exactly six fractional digits, UTC or an offset.
/// **Source:** seen on 1.37.1.
[[nodiscard]] bool is_micro_time(std::string_view text);

}  // namespace dhc::sim
