#pragma once
#include "reconcilers/taint/speech.h"

namespace dhc::taint {

/// How long a staged rule stays at effect None if the API server does not say what it would do.
inline constexpr Millis kStagePatience = Seconds(30);

/// What becomes of the DeviceTaintRule of each DRA device that is remembered.
void plan_rules(const PlanInput& input, Speech& speech);

}  // namespace dhc::taint
