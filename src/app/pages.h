#pragma once
#include <string_view>

#include "app/admin_server.h"
#include "app/metrics.h"
#include "app/status_store.h"

namespace dhc {

/// The pages for probes: /healthz, /readyz. They name no pod. Any thread.
[[nodiscard]] Page health_page(const StatusStore& status_store, std::string_view path);

/// Where the live page's events are streamed.
inline constexpr std::string_view kEventsPath = "/events";

/// The pages for operators: the live page with its files, /verdicts, which both name every pod concerned, and the
/// probes' own. Any thread.
[[nodiscard]] Page detail_page(const StatusStore& status_store, std::string_view path);

/// The page for Prometheus: /metrics. Any thread.
[[nodiscard]] Page metrics_page(const Metrics& metrics, std::string_view path);

}  // namespace dhc
