#pragma once
#include "reconcilers/job_retry/planning.h"

namespace dhc::job_retry {

/// Says of what the Jobs' pods died, notes it on the Jobs, gives the retries back that were lost so, and makes a Job
/// anew that died of it where the policy says so.
void settle_losses(Planning& planning);

}  // namespace dhc::job_retry
