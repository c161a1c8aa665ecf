#pragma once
#include <string>

#include "domain/cluster/world.h"
#include "domain/contract/subject.h"

namespace dhc {

/// The node of that name, also if the World does not know it.
[[nodiscard]] inline Subject subject_of_node(const World& world, std::string_view name) {
  const auto* node = world.node(name);
  return {.kind = "Node",
          .ns = {},
          .name = std::string(name),
          .uid = node == nullptr ? std::string() : node->meta.uid.str()};
}

}  // namespace dhc
