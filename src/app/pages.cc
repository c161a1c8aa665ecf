#include "app/pages.h"

#include <optional>
#include <utility>

#include "app/clock.h"
#include "app/live/page_files.h"

namespace dhc {

namespace {
Page page_of(Report report) { return {.status = report.ok ? 200U : 503U, .body = std::move(report.text)}; }
Page verdicts_page(const StatusStore& status_store) {
  auto report = verdicts_report(status_store.facts(), read_now());
  return {.status = report.ok ? 200U : 503U,
          .content_type = "application/json",
          .body = std::move(report.text),
          .shared = report.ok ? status_store.verdicts_text() : nullptr};
}
/// A part of the live page. It may load from and speak to its own origin alone, runs no script but its own file, and no
/// other page may hold it in a frame.
Page live_page_of(std::string_view content_type, std::string_view text) {
  return {
      .content_type = std::string(content_type),
      .body = std::string(text),
      .headers = {{"Content-Security-Policy",
                   "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                   "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
                   "trusted-types 'none'"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cross-Origin-Resource-Policy", "same-origin"},
                  {"Cross-Origin-Opener-Policy", "same-origin"}}};
}

constexpr std::string_view kScript = "text/javascript; charset=utf-8";

std::optional<Page> live_page(std::string_view path) {
  if (path == "/") return live_page_of("text/html; charset=utf-8", page_html());
  if (path == "/page.css") return live_page_of("text/css; charset=utf-8", page_css());
  if (path == "/page.js") return live_page_of(kScript, page_js());
  if (path == "/model.js") return live_page_of(kScript, model_js());
  if (path == "/parts.js") return live_page_of(kScript, parts_js());
  if (path == "/icon.svg") return live_page_of("image/svg+xml", icon_svg());
  return std::nullopt;
}

Page not_here(std::string_view instead) { return {.status = 404, .body = "not here: " + std::string(instead) + "\n"}; }
}  // namespace

Page health_page(const StatusStore& status_store, std::string_view path) {
  if (path == "/healthz" || path == "/livez") return page_of(healthz(status_store.facts(), mono_now()));
  if (path == "/readyz") return page_of(readyz(status_store.facts(), mono_now()));
  if (path == "/verdicts") {
    return not_here(
        "/healthz /readyz; /verdicts and the live page are on --detail-bind-address, 127.0.0.1:8082 by default: "
        "kubectl "
        "port-forward POD 8082");
  }
  return not_here("/healthz /readyz");
}

Page detail_page(const StatusStore& status_store, std::string_view path) {
  if (path == "/verdicts") return verdicts_page(status_store);
  if (path == "/healthz" || path == "/livez" || path == "/readyz") return health_page(status_store, path);
  if (auto page = live_page(path)) return *std::move(page);
  return not_here("/ (the live page) /healthz /readyz /verdicts");
}

Page metrics_page(const Metrics& metrics, std::string_view path) {
  if (path != "/metrics") return not_here("/metrics");
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text()};
}

}  // namespace dhc
