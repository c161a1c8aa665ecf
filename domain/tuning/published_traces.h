#pragma once
#include <expected>
#include <string>
#include <string_view>

#include "domain/tuning/fault_trace.h"

namespace dhc::tuning {

/// The GPU faults of InfiniteHBD's servers (`fault_trace.json`); no server is known to have come or gone. Refused with
/// the event and the reason in words; likewise below.
/// **Source:** github.com/stepfun-ai/InfiniteHBD-Trace (7aacdc8), and for the 400 servers arXiv 2502.03885.
[[nodiscard]] std::expected<FaultTrace, std::string> read_infinitehbd(std::string_view json);

/// The lives of Titan's cards (`gc_full.csv`): a row with an event is a fault at the time of its removal, and one
/// without insertion only that. Spans of one card that overlap are taken as one.
/// **Source:** github.com/olcf/TitanGPULife (f330355), Ostrouchov et al., SC'20.
[[nodiscard]] std::expected<FaultTrace, std::string> read_titan(std::string_view csv);

/// The one of the two that the text is, by how it begins; refused as above, and if it is neither.
[[nodiscard]] std::expected<FaultTrace, std::string> read_published(std::string_view text);

}  // namespace dhc::tuning
