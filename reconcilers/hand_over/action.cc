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
  return WriteKey{.key = hand_over_write_key(node),
                  .seen_version = seen_version,
                  .asks = asks,
                  .begins = hands_over,
                  .shown_by = {k8s::Kind::Node}};
}

namespace {

ActionFacts facts_of_object(const ObjectName& object, std::string_view name, std::string_view what) {
  return {.name = name,
          .kind = object.kind,
          .ns = object.ns,
          .object = object.name,
          .uid = {},
          .what = what,
          // Its server may be a webhook that is slow: nothing else waits for it.
          .queue = Queue::Objects,
          .is_notable = true,
          .policy = object.policy};
}

/// No World shows these objects: what is remembered of them stands for it.
WriteKey key_of(const ObjectName& object, std::string_view seen) {
  return {.key = handed_object_key(object.slot), .seen_version = std::string(seen)};
}

}  // namespace

ActionFacts MakeObject::facts() const { return facts_of_object(object, "MakeHandOverObject", "hand over"); }

std::string MakeObject::words() const {
  return fmt::format("{} {} for node {}: make", object.kind, object.name, object.node);
}

std::optional<WriteKey> MakeObject::write_key() const { return key_of(object, kSeenNoted); }

ActionFacts RemoveObject::facts() const { return facts_of_object(object, "RemoveHandOverObject", "take back"); }

std::string RemoveObject::words() const {
  return fmt::format("{} {} for node {}: delete", object.kind, object.name, object.node);
}

std::optional<WriteKey> RemoveObject::write_key() const { return key_of(object, kSeenMade); }

}  // namespace dhc::hand_over
