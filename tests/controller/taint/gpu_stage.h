#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/core/stage.h"

namespace dhc::test {

inline const std::vector<std::string> kFourGpus = {"gpu-0", "gpu-1", "gpu-2", "gpu-3"};

/// A Job's pod with a claim of its own on gpu-0, which turns Unhealthy; the policy taints and evicts.
[[nodiscard]] inline Stage gpu_stage(TaintRules taint = {}) {
  Stage stage;
  stage.policy().taint = taint;
  stage.send_policy();
  stage.node("node-a", 0);
  stage.slice("node-a", kFourGpus);
  stage.claim("train-gpu", {"gpu-0"}, "train-1");
  stage.pod({.name = "train-1",
             .owner = "Job/train",
             .health = k8s::Health::Unhealthy,
             .message = "Xid 79",
             .claim = "train-gpu"});
  return stage;
}

/// The driver publishes these devices of node-a, and no others.
inline void publish(Stage& stage, std::vector<k8s::SliceDevice> devices) {
  k8s::ResourceSlice slice;
  slice.meta.name = "slice-node-a";
  slice.meta.uid = "uid-slice-node-a";
  slice.driver = kDriver;
  slice.pool = "node-a";
  slice.generation = 1;
  slice.node_name = "node-a";
  slice.devices = std::move(devices);
  stage.put(slice);
}

/// The evicted pod goes away, with its claim.
inline void drop_pod(Stage& stage, const std::string& pod, const std::string& claim) {
  stage.remove_pod(pod);
  stage.remove(k8s::Kind::ResourceClaim, claim);
}

/// Turns for at most an hour until our rule or node taint is to be removed; that request gets no answer, and nothing
/// comes of it. False: nothing was to be removed.
[[nodiscard]] inline bool loses_removal(Stage& stage) {
  for (int second = 0; second < 3600; ++second) {
    bool is_lost = false;
    for (const auto& action : stage.turn()) {
      const auto* patch = std::get_if<taint::PatchNodeTaint>(&action);
      const bool removes = std::holds_alternative<taint::DeleteRule>(action) || (patch != nullptr && !patch->add);
      stage.answer(action, removes ? Status(fail(ErrorKind::TimedOut, "no answer in 30 s")) : Status());
      is_lost = is_lost || removes;
    }
    if (is_lost) return true;
    stage.advance(Seconds(1));
  }
  return false;
}

/// The writes without conditions and states, joined.
[[nodiscard]] inline std::string deeds(const Stage& stage) {
  std::string joined;
  for (const auto& word : stage.writes()) {
    if (word.starts_with("condition") || word == "state") continue;
    joined += (joined.empty() ? "" : ", ") + word;
  }
  return joined;
}

}  // namespace dhc::test
