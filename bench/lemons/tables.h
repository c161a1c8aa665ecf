#pragma once
#include <string>

#include "domain/tuning/fault_trace.h"

namespace dhc::lemons {

/// All that is counted of a trace, in Markdown: the trace itself, a table for each ending, and the best choices.
[[nodiscard]] std::string tables_of(const tuning::FaultTrace& trace);

}  // namespace dhc::lemons
