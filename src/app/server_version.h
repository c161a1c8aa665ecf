#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dhc {

/// What is wrong with the DeviceTaintRules of a cluster whose API server answers `GET /version` so, and from which
/// patch on it is right; none: nothing that is known. The scheduler's own version is shown nowhere: it is taken to be
/// the API server's, than which it is never newer. **Source:** kubernetes/kubernetes#139651, released first in v1.36.3.
[[nodiscard]] std::optional<std::string> warning_of_rules(std::string_view version_body);

/// That the kubelets of a cluster whose API server answers `GET /version` so report no device's health by default;
/// none: they do, or the version cannot be read. Kubelets are never newer than the API server. **Source:** KEP-4680:
/// the gate ResourceHealthStatus is beta, and on, from 1.36; alpha, and off, from 1.31.
[[nodiscard]] std::optional<std::string> warning_of_reports(std::string_view version_body);

}  // namespace dhc
