#pragma once
#include "reconcilers/job_retry/planning.h"

namespace dhc::job_retry {

/// Looks at every Job that carries our annotations: what has become of its credits, whether another client took its
/// limit back, and what is still to be said of its losses.
void review_jobs(Planning& planning);

}  // namespace dhc::job_retry
