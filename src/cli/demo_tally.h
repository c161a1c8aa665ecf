#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "domain/contract/verdict.h"
#include "simulator/script/demo_script.h"

namespace dhc::cli {

/// The demo's sum: what broke under whom, and who was evicted.
struct DemoTally {
  std::set<std::string> holders;  ///< `namespace/name` of the pods that held a device when it broke.
  std::size_t broken = 0;
  std::size_t repaired = 0;

  void count(const sim::DemoEvent& event);
};

/// How it ended.
struct DemoEnd {
  bool exact = false;  ///< The evicted pods are the holders, except those that have a reason; nobody is evicted twice.
  std::string text;    ///< For people, with line ends.
};

/// Compares the tally with what the simulated server saw. `verdicts` are those held at the end.
[[nodiscard]] DemoEnd end_of(const DemoTally& tally, std::span<const std::string> evicted,
                             std::span<const Verdict> verdicts);

}  // namespace dhc::cli
