#pragma once
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc::year {

/// One fault of a server, as a trace tells it; from the trace's beginning.
struct ServerFault {
  std::string server;
  Millis from{0};
  Millis to{0};
  std::string what;        ///< The trace's class and words.
  bool of_server = false;  ///< The class says that the whole server is down, not one device.
};

/// The faults of one fleet.
struct FaultTrace {
  std::vector<ServerFault> faults;  ///< By their beginning.
  Millis length{0};
  std::size_t servers = 0;  ///< Those without a fault included.
};

/// InfiniteHBD's `fault_trace.json`, every class of it; refused with the reason in words. Of GPUs, network cards,
/// cables and tests one device each is broken, and of what the trace calls unknown; all else breaks the server.
/// **Source:** github.com/stepfun-ai/InfiniteHBD-Trace (7aacdc8), and for the 400 servers arXiv 2502.03885.
[[nodiscard]] std::expected<FaultTrace, std::string> read_faults(std::string_view json);

/// The middle of how long the faults lasted: when people had noticed and repaired.
[[nodiscard]] Millis median_length(const FaultTrace& trace);

/// A fault as it befalls the simulated fleet.
struct Fault {
  Millis from{0};
  Millis to{0};
  int node = 0;
  std::vector<int> devices;
  bool of_server = false;
  std::string what;
};

/// How a trace of servers becomes one of devices.
struct Spread {
  int nodes = 400;
  int devices = 8;     ///< Of a server.
  int per_fault = 1;   ///< Devices that a fault of no whole server breaks.
  double again = 0.5;  ///< The chance that it breaks the server's weak device rather than any.
  Millis length{0};    ///< What begins later is left out, what lasts longer is cut; zero: all.
};

/// Which devices each fault breaks, chosen by the seed. Servers without a fault get the numbers that are left.
[[nodiscard]] std::vector<Fault> spread(const FaultTrace& trace, const Spread& how, std::uint64_t seed);

}  // namespace dhc::year
