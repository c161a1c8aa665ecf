#pragma once
#include "reconcilers/job_retry/turn.h"

namespace dhc::job_retry {

/// Looks at every Job that carries our annotations: what has become of its credits, whether another client took its
/// limit back, and what is still to be said of its losses.
void review_jobs(Turn& turn);

}  // namespace dhc::job_retry
