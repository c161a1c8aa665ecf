#pragma once
#include <string>

#include "domain/cluster/world.h"
#include "domain/contract/subject.h"

namespace dhc {

/// The node of that name, also if the World does not know it.
[[nodiscard]] inline Subject subject_of_node(const World& world, const std::string& name) {
  const auto* node = world.node(name);
  return {.kind = "Node", .ns = {}, .name = name, .uid = node == nullptr ? std::string() : node->meta.uid};
}

}  // namespace dhc
