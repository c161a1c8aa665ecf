#pragma once
#include <optional>

#include "domain/scene.h"

namespace dhc {

/// Why this pod is never evicted as things are; none if nothing but time and limits stand in the way.
/// **Source:** issue lists of drain tools: mirror and DaemonSet pods come back to the same node, bare pods do not come
/// back at all.
[[nodiscard]] std::optional<Ruling> excluded_because(const Exposure& exposure, const Scene& scene);

}  // namespace dhc
