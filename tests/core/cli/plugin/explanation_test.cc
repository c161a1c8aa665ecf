#include "cli/plugin/explanation.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "reconcilers/eviction/gates.h"
#include "tests/core/cli/plugin/sample_sight.h"

namespace dhc::test {

using cli::GateMark;
using cli::SubjectKind;

namespace {

cli::Explanation explained(const cli::Sight& sight, const cli::Asked& asked) {
  auto explanation = cli::explain_subject(sight, asked);
  REQUIRE(explanation);
  return *std::move(explanation);
}

}  // namespace

TEST_CASE("a pod's explanation marks the gate that holds, and says until when and what to do") {
  const auto sight = sample_sight();
  const auto found = explained(sight, {.kind = SubjectKind::Pod, .ns = "ml", .name = "train-0"});
  REQUIRE(found.walks.size() == 1);
  const auto& gates = found.walks[0].gates;
  REQUIRE(gates.size() == eviction::Gates::texts().size());
  CHECK(gates[4].mark == GateMark::Passed);
  CHECK(gates[5].name == "window");
  CHECK(gates[5].mark == GateMark::Holds);
  CHECK(gates[6].mark == GateMark::NotAsked);
  const auto text = cli::explanation_text(sight, found);
  CAPTURE(text);
  CHECK(
      text.starts_with("Device gpu.nvidia.com/node-a/gpu-0\n"
                       "  Unhealthy since 2026-11-20T12:00:00Z (4m12s): \"GPU is lost\"\n"
                       "  incident open since 2026-11-20T12:01:00Z (3m12s)\n"
                       "  policy gpus; tainted: rule dhc-node-a-gpu-0-1f0c86d29ab35e47; held by ml/train-0\n"
                       "  2 incidents remembered, penalty 1.98, quarantined above 2\n"
                       "    2026-11-20T02:00:00Z  critical XID 48 reported by NVML\n"
                       "    2026-11-20T12:00:00Z  GPU is lost\n"
                       "\n"
                       "Eviction of ml/train-0 on account of gpu.nvidia.com/node-a/gpu-0 (policy gpus, enforce)\n"
                       "  held by gate 6 of 29, window, until 2026-11-20T12:04:30Z (in 18s)\n"
                       "  WaitingForEvictAfter: evict.after of policy gpus is 210 s\n"
                       "  to do: Wait, or lower evict.after.\n"
                       "  ok      1 eviction "));
  CHECK(text.find("\n  HOLDS   6 window ") != std::string::npos);
  CHECK(
      text.find("\nNode node-a: Tainted: the hold of 48 h ends it\n  next step at 2026-11-22T12:00:00Z (in 1d23h)\n") !=
      std::string::npos);
}

TEST_CASE("an eviction under way has passed every gate, and a gate of a newer controller is not guessed at") {
  auto sight = sample_sight();
  sight.status.verdicts[0].gate.clear();
  sight.status.verdicts[0].reason = "Evicting";
  const auto going = explained(sight, {.kind = SubjectKind::Pod, .ns = "ml", .name = "train-0"});
  REQUIRE(going.walks.size() == 1);
  for (const auto& gate : going.walks[0].gates) CHECK(gate.mark == GateMark::Passed);
  sight.status.verdicts[0].gate = "a new gate";
  const auto newer = explained(sight, {.kind = SubjectKind::Pod, .ns = "ml", .name = "train-0"});
  CHECK(newer.walks.at(0).gates.empty());
  CHECK(cli::explanation_text(sight, newer).find("Evicting") != std::string::npos);
}

TEST_CASE("a device is found by its last part, or in full where two have the same") {
  auto sight = sample_sight();
  CHECK(explained(sight, {.kind = SubjectKind::Device, .ns = {}, .name = "gpu-0"}).devices.size() == 1);
  sight.status.devices[2].device = "gpu.nvidia.com/node-c/gpu-0";
  const auto both = cli::explain_subject(sight, {.kind = SubjectKind::Device, .ns = {}, .name = "gpu-0"});
  REQUIRE_FALSE(both);
  CHECK(both.error() ==
        "2 devices are named gpu-0; give one in full:\n  gpu.nvidia.com/node-a/gpu-0\n  gpu.nvidia.com/node-c/gpu-0");
  const auto one = explained(sight, {.kind = SubjectKind::Device, .ns = {}, .name = "gpu.nvidia.com/node-a/gpu-0"});
  REQUIRE(one.devices.size() == 1);
  CHECK(one.walks.size() == 1);
}

TEST_CASE("a node's explanation has its devices and the verdicts on their pods, and of a stranger nothing is known") {
  const auto sight = sample_sight();
  const auto node = explained(sight, {.kind = SubjectKind::Node, .ns = {}, .name = "node-b"});
  CHECK(node.devices.size() == 1);
  REQUIRE(node.verdicts.size() == 1);
  CHECK(node.verdicts[0]->reason == "NoPolicy");
  CHECK(explained(sight, {.kind = SubjectKind::Node, .ns = {}, .name = "node-z"}).is_empty());
  CHECK(explained(sight, {.kind = SubjectKind::Pod, .ns = "web", .name = "train-0"}).is_empty());
  CHECK(explained(sight, {.kind = SubjectKind::Job, .ns = "ml", .name = "train"}).is_empty());
}

TEST_CASE(
    "a Job's explanation has its pods, their devices, each pod's way through the gates, and what its retries are") {
  auto sight = sample_sight();
  auto& verdicts = sight.status.verdicts;
  verdicts[0].job = "train";
  verdicts.push_back(verdicts[0]);
  verdicts.back().name = "train-1";
  verdicts.back().device = "gpu.nvidia.com/node-c/gpu-5";
  verdicts.back().gate = "siblings";
  verdicts.back().reason = "WaitingForSiblings";
  verdicts.push_back(verdicts[0]);
  verdicts.back().gate.clear();
  verdicts.back().reason = "Credited";
  verdicts.back().message = "backoffLimit 6 to 7";
  verdicts.push_back(
      {.kind = "Job", .ns = "ml", .name = "train", .reason = "CreditReverted", .message = "GitOps set it back"});
  auto other = verdicts[0];  // of the same name, elsewhere
  other.ns = "web";
  verdicts.push_back(other);
  const auto found = explained(sight, {.kind = SubjectKind::Job, .ns = "ml", .name = "train"});
  REQUIRE(found.devices.size() == 2);
  CHECK(found.devices[0]->device == "gpu.nvidia.com/node-a/gpu-0");
  CHECK(found.devices[1]->device == "gpu.nvidia.com/node-c/gpu-5");
  REQUIRE(found.walks.size() == 2);
  CHECK(found.walks[0].verdict->name == "train-0");
  CHECK(found.walks[1].verdict->name == "train-1");
  CHECK(std::ranges::count(found.walks[1].gates, GateMark::Holds, &cli::GateLine::mark) == 1);
  const auto text = cli::explanation_text(sight, found);
  CAPTURE(text);
  CHECK(text.starts_with(
      "Job ml/train: 2 of its pods are concerned: train-0, train-1\n\nDevice gpu.nvidia.com/node-a/gpu-0\n"));
  CHECK(text.contains("\nEviction of ml/train-1 on account of gpu.nvidia.com/node-c/gpu-5 (policy gpus, enforce)\n"));
  CHECK(text.contains("\nPod ml/train-0: Credited: backoffLimit 6 to 7\n"));
  CHECK(text.contains("\nJob ml/train: CreditReverted: GitOps set it back\n"));
  CHECK(text.contains("\nNode node-a: Tainted: "));
  CHECK_FALSE(text.contains("infer-1"));
}

TEST_CASE("a Job of which only the Job is spoken is explained without pods") {
  auto sight = sample_sight();
  sight.status.verdicts.push_back({.kind = "Job",
                                   .ns = "ml",
                                   .name = "train",
                                   .device = "gpu.nvidia.com/node-c/gpu-5",
                                   .reason = "JobDiedOfDevice",
                                   .message = "it has failed"});
  const auto found = explained(sight, {.kind = SubjectKind::Job, .ns = "ml", .name = "train"});
  REQUIRE(found.devices.size() == 1);
  const auto text = cli::explanation_text(sight, found);
  CHECK(text.starts_with("Job ml/train: nothing is decided about a pod of it\n\nDevice gpu.nvidia.com/node-c/gpu-5\n"));
  CHECK(text.contains("Job ml/train: JobDiedOfDevice: it has failed\n"));
}

TEST_CASE("as JSON each gate has a state") {
  const auto sight = sample_sight();
  const auto json =
      cli::explanation_json(sight, explained(sight, {.kind = SubjectKind::Pod, .ns = "ml", .name = "train-0"}));
  CHECK(json["asked"] == "pod ml/train-0");
  CHECK(json["evictions"][0]["gates"][0]["state"] == "passed");
  CHECK(json["evictions"][0]["gates"][5]["state"] == "holds");
  CHECK(json["evictions"][0]["gates"][6]["state"] == "notAsked");
}

TEST_CASE("kinds are known by kubectl's words") {
  CHECK(cli::parse_subject_kind("po") == SubjectKind::Pod);
  CHECK(cli::parse_subject_kind("nodes") == SubjectKind::Node);
  CHECK_FALSE(cli::parse_subject_kind("Paused"));
}

}  // namespace dhc::test
