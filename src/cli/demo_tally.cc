#include "cli/demo_tally.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dhc::cli {

namespace {
/// Why a pod still stands, if the controller says so.
std::map<std::string, std::string> reasons_of(std::span<const Verdict> verdicts) {
  std::map<std::string, std::string> reasons;
  for (const auto& verdict : verdicts) {
    if (verdict.subject.kind != "Pod") continue;
    reasons[verdict.subject.ns + "/" + verdict.subject.name] =
        fmt::format("{}: {}", to_string(verdict.reason), verdict.message);
  }
  return reasons;
}
}  // namespace

void DemoTally::count(const sim::DemoEvent& event) {
  if (event.what == sim::DemoEvent::What::Repaired) {
    ++repaired;
    return;
  }
  ++broken;
  holders.insert(event.holders.begin(), event.holders.end());
}

DemoEnd end_of(const DemoTally& tally, std::span<const std::string> evicted, std::span<const Verdict> verdicts) {
  const std::set<std::string> once(evicted.begin(), evicted.end());
  const auto reasons = reasons_of(verdicts);
  DemoEnd end{.exact = once.size() == evicted.size(), .text = {}};
  std::string details;
  for (const auto& pod : tally.holders) {
    if (once.contains(pod)) continue;
    const auto reason = reasons.find(pod);
    details +=
        fmt::format("  not evicted: {} ({})\n", pod, reason == reasons.end() ? "no reason given" : reason->second);
    if (reason == reasons.end()) end.exact = false;
  }
  for (const auto& pod : once) {
    if (tally.holders.contains(pod)) continue;
    details += fmt::format("  evicted without a broken device: {}\n", pod);
    end.exact = false;
  }
  if (once.size() != evicted.size()) details += "  a pod was evicted twice\n";
  end.text =
      fmt::format("{} devices broke, {} were repaired. {} pods held a broken device, {} pods were evicted.\n{}{}\n",
                  tally.broken, tally.repaired, tally.holders.size(), once.size(), details,
                  end.exact ? "Exactly the pods that held broken devices were evicted, and no other."
                            : "That is NOT what should have happened.");
  return end;
}

}  // namespace dhc::cli
