#pragma once
#include "app/admin_server.h"
#include "app/board.h"
#include "app/metrics.h"

namespace dhc {

/// The pages for probes and people: /healthz, /readyz, /verdicts. Any thread.
[[nodiscard]] Page health_page(const Board& board, std::string_view path);

/// The page for Prometheus: /metrics. Any thread.
[[nodiscard]] Page metrics_page(const Metrics& metrics, std::string_view path);

}  // namespace dhc
