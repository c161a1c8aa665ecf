#include "app/verdict_containers.h"

#include <algorithm>

namespace dhc {

void name_containers(std::span<Verdict> verdicts, const World& world) {
  for (auto& verdict : verdicts) {
    if (verdict.subject.kind != "Pod" || verdict.device.empty()) continue;
    const auto* record = world.pod(verdict.subject.uid);
    if (record == nullptr) continue;
    // A pod holds a few devices.
    const auto held = std::ranges::find_if(record->held_devices,
                                           [&](const HeldDevice& one) { return to_string(one.key) == verdict.device; });
    if (held != record->held_devices.end()) verdict.containers = held->containers;
  }
}

}  // namespace dhc
