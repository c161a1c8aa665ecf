#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dhc {

/// What is wrong with the DeviceTaintRules of a cluster whose API server answers `GET /version` so, and from which
/// patch on it is right; none: nothing that is known. The scheduler's own version is shown nowhere: it is taken to be
/// the API server's, than which it is never newer. **Source:** kubernetes/kubernetes#139651, released first in v1.36.3.
[[nodiscard]] std::optional<std::string> warning_of_rules(std::string_view version_body);

}  // namespace dhc
