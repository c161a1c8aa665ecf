#pragma once
#include <string>

#include "bench/lemons/fault_trace.h"

namespace dhc::lemons {

/// All that is counted of a trace, in Markdown: the trace itself, a table for each ending, and the best choices.
[[nodiscard]] std::string tables_of(const FaultTrace& trace);

}  // namespace dhc::lemons
