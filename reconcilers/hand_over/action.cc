#include "reconcilers/hand_over/action.h"

#include <fmt/format.h>

#include "domain/limits/write_keys.h"

namespace dhc::hand_over {

ActionFacts ApplyNodeConditions::facts() const {
  return {.name = "ApplyNodeConditions",
          .kind = "Node",
          .ns = {},
          .object = node,
          .uid = uid,
          .what = hands_over ? "hand over" : "take back",
          .queue = Queue::Taints,
          .is_notable = true,
          .policy = policy};
}

std::string ApplyNodeConditions::words() const {
  std::string said;
  for (const auto& condition : conditions) {
    if (!said.empty()) said += ", ";
    said += condition.type + "=" + condition.status;
  }
  return fmt::format("conditions of node {}: {}", node, said.empty() ? "none of ours" : said);
}

std::optional<WriteKey> ApplyNodeConditions::write_key() const {
  return WriteKey{.key = hand_over_write_key(node), .seen_version = seen_version};
}

}  // namespace dhc::hand_over
