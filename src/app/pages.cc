#include "app/pages.h"

#include <utility>

#include "app/clock.h"

namespace dhc {

namespace {
Page page_of(Report report) { return {.status = report.ok ? 200U : 503U, .body = std::move(report.text)}; }
Page json_page_of(Report report) {
  return {.status = report.ok ? 200U : 503U, .content_type = "application/json", .body = std::move(report.text)};
}
Page not_here(std::string_view instead) { return {.status = 404, .body = "not here: " + std::string(instead) + "\n"}; }
}  // namespace

Page health_page(const StatusStore& status_store, std::string_view path) {
  if (path == "/healthz" || path == "/livez") return page_of(healthz(status_store.facts(), mono_now()));
  if (path == "/readyz") return page_of(readyz(status_store.facts(), mono_now()));
  if (path == "/verdicts") {
    return not_here(
        "/healthz /readyz; /verdicts is on --detail-bind-address, 127.0.0.1:8082 by default: kubectl "
        "port-forward POD 8082");
  }
  return not_here("/healthz /readyz");
}

Page detail_page(const StatusStore& status_store, std::string_view path) {
  if (path == "/verdicts") {
    return json_page_of(verdicts_report(status_store.facts(), *status_store.verdicts(), mono_now()));
  }
  if (path == "/healthz" || path == "/livez" || path == "/readyz") return health_page(status_store, path);
  return not_here("/healthz /readyz /verdicts");
}

Page metrics_page(const Metrics& metrics, std::string_view path) {
  if (path != "/metrics") return not_here("/metrics");
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()};
}

}  // namespace dhc
