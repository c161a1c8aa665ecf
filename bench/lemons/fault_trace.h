#pragma once
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc::lemons {

/// From when to when; the ends may be the same moment.
struct Span {
  WallTime from;
  WallTime to;
};

/// What a trace tells of one device that broke.
struct BrokenDevice {
  std::string name;
  std::vector<Span> in_service;  ///< Oldest first, apart from each other.
  std::vector<Span> faults;      ///< By their beginning.
};

/// The faults of one fleet.
struct FaultTrace {
  std::string unit;                       ///< What a device is in it, in the plural: `servers`.
  std::size_t devices = 0;                ///< Those that never broke included.
  double device_days = 0;                 ///< In service, all devices together.
  std::vector<BrokenDevice> broken = {};  ///< By name.
};

/// The GPU faults of InfiniteHBD's servers (`fault_trace.json`); no server is known to have come or gone. Refused with
/// the reason in words, below as well.
/// **Source:** github.com/stepfun-ai/InfiniteHBD-Trace (7aacdc8), and for the 400 servers arXiv 2502.03885.
[[nodiscard]] std::expected<FaultTrace, std::string> read_infinitehbd(std::string_view json);

/// The lives of Titan's cards (`gc_full.csv`): a row with an event is a fault at the time of its removal, and one
/// without insertion only that. Spans of one card that overlap are taken as one.
/// **Source:** github.com/olcf/TitanGPULife (f330355), Ostrouchov et al., SC'20.
[[nodiscard]] std::expected<FaultTrace, std::string> read_titan(std::string_view csv);

}  // namespace dhc::lemons
