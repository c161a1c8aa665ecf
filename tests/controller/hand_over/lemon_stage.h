#pragma once
#include <string>
#include <utility>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "tests/controller/taint/gpu_stage.h"

namespace dhc::test {

/// gpu-0 of node-a is quarantined at its first incident, and the node handed over for that. Nothing is evicted.
[[nodiscard]] inline Stage lemon_stage(HandOverRules rules) {
  auto stage = gpu_stage();
  stage.policy().evict.reset();
  stage.policy().recover.quarantine_above = 0.5;
  stage.policy().hand_over = std::move(rules);
  stage.send_policy();
  return stage;
}

/// An operator vouches for all devices of the node.
inline void acknowledge(Stage& stage, const std::string& name = "node-a") {
  auto node = stage.node_named(name);
  node.meta.annotations = {{std::string(kAcknowledgeAnnotation), format_rfc3339(stage.now().wall)}};
  stage.put(node);
}

}  // namespace dhc::test
