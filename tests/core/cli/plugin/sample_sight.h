#pragma once
#include <string>
#include <string_view>

#include "base/rfc3339.h"
#include "cli/plugin/sight.h"

namespace dhc::test {

inline WallTime clock_at(std::string_view time) {
  return parse_rfc3339("2026-11-20T" + std::string(time) + "Z").value();
}

/// A DRA device with an open incident whose holder waits, a plugin device that no policy names, and a lemon in
/// quarantine that nobody holds; at 12:04:12.
inline cli::Sight sample_sight() {
  cli::Sight sight;
  sight.ns = "device-health-system";
  sight.written_by = "controller-a";
  sight.written_at = clock_at("12:04:10");
  sight.leader = "controller-a_0123456789abcdef";
  sight.lease_ends = clock_at("12:04:25");
  sight.now = clock_at("12:04:12");
  auto& status = sight.status;
  status.program = "0.1.0";
  status.mode = "enforce";
  status.devices_unhealthy = 2;
  status.incidents_open = 1;
  status.quarantined = 1;
  status.policies = {
      {.name = "gpus", .mode = "enforce", .quarantine_above = 2, .half_life = Seconds(std::chrono::hours(720))}};
  status.devices.push_back({.device = "gpu.nvidia.com/node-a/gpu-0",
                            .node = "node-a",
                            .health = "Unhealthy",
                            .since = clock_at("12:00:00"),
                            .said = "GPU is lost",
                            .policy = "gpus",
                            .holders = {"ml/train-0"},
                            .taint = "rule dhc-node-a-gpu-0-1f0c86d29ab35e47",
                            .opened_at = clock_at("12:01:00"),
                            .incidents = 2,
                            .penalty = 1.98,
                            .penalty_at = clock_at("12:01:00"),
                            .history = {{.at = clock_at("02:00:00"), .said = "critical XID 48 reported by NVML"},
                                        {.at = clock_at("12:00:00"), .said = "GPU is lost"}}});
  status.devices.push_back({.device = "node-b/example.com/gpu/GPU-3",
                            .node = "node-b",
                            .health = "Unhealthy",
                            .since = clock_at("11:00:00"),
                            .holders = {"web/infer-1"}});
  status.devices.push_back({.device = "gpu.nvidia.com/node-c/gpu-5",
                            .node = "node-c",
                            .health = "Unreported",
                            .since = clock_at("01:00:00"),
                            .policy = "gpus",
                            .taint = "rule dhc-node-c-gpu-5-77aa11bbd004c2e8",
                            .quarantined = true,
                            .closed_at = clock_at("02:00:00"),
                            .closed_because = "the hold is over",
                            .incidents = 3,
                            .penalty = 2.75,
                            .penalty_at = clock_at("01:00:00")});
  status.verdicts.push_back({.kind = "Pod",
                             .ns = "ml",
                             .name = "train-0",
                             .node = "node-a",
                             .device = "gpu.nvidia.com/node-a/gpu-0",
                             .policy = "gpus",
                             .mode = "enforce",
                             .reason = "WaitingForEvictAfter",
                             .gate = "window",
                             .message = "evict.after of policy gpus is 210 s",
                             .since = clock_at("12:00:00"),
                             .next_at = clock_at("12:04:30")});
  status.verdicts.push_back({.kind = "Node",
                             .name = "node-a",
                             .device = "gpu.nvidia.com/node-a/gpu-0",
                             .policy = "gpus",
                             .mode = "enforce",
                             .reason = "Tainted",
                             .message = "the hold of 48 h ends it",
                             .since = clock_at("12:00:00"),
                             .next_at = parse_rfc3339("2026-11-22T12:00:00Z")});
  status.verdicts.push_back({.kind = "Pod",
                             .ns = "web",
                             .name = "infer-1",
                             .node = "node-b",
                             .device = "node-b/example.com/gpu/GPU-3",
                             .reason = "NoPolicy",
                             .message = "no policy names the resource example.com/gpu",
                             .since = clock_at("11:00:00")});
  return sight;
}

}  // namespace dhc::test
