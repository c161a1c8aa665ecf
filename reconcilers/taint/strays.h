#pragma once
#include "reconcilers/taint/speech.h"

namespace dhc::taint {

/// Rules that stand under our name and that no incident of their device speaks for: those of cards that came out
/// otherwise than we sent them are taken back; what is not as we make it is said as long as it stands, because nobody
/// but a person takes it away.
void plan_strays(const PlanInput& input, Speech& speech);

}  // namespace dhc::taint
