#pragma once
#include "base/now.h"
#include "simulator/api/field.h"
#include "simulator/api/kinds.h"

namespace dhc::sim {

/// `columnDefinitions` of a Table of this resource.
[[nodiscard]] Json columns_of(Res res);

/// The cells of one object's row, as many as `columns_of` has; `now` is for its age.
[[nodiscard]] Json cells_of(Res res, const Json& object, WallTime now);

/// What a pod's devices are and how they are, such as `gpu-1:Unhealthy`; empty if it holds none.
[[nodiscard]] std::string device_summary(const Json& pod);

}  // namespace dhc::sim
