#pragma once
#include <array>
#include <optional>
#include <string_view>

namespace dhc {

/// Major, minor and patch of a version as Kubernetes writes it, `v1.37.1`; none: it cannot be read. What follows them
/// (`-rc.1`, `+k3s1`, `-gke.1000`) is the distributor's, or a pre-release, and is left out.
[[nodiscard]] std::optional<std::array<int, 3>> release_numbers(std::string_view version);

}  // namespace dhc
