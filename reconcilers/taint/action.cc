#include "reconcilers/taint/action.h"

#include <fmt/format.h>

#include "domain/limits/write_keys.h"

namespace dhc::taint {

ActionFacts ApplyRule::facts() const {
  return {.name = "ApplyRule",
          .kind = "DeviceTaintRule",
          .ns = {},
          .object = name,
          .uid = uid,
          .what = device,
          .queue = Queue::Taints,
          .is_notable = true,
          .makes_taint = uid.empty(),
          .policy = policy,
          .driver = driver};
}

std::string ApplyRule::words() const {
  const auto why = same_card_as.empty() ? std::string() : fmt::format(", which is on the card of {}", same_card_as);
  return fmt::format("DeviceTaintRule {} ({}) for {}{}", name, effect, device, why);
}

std::optional<WriteKey> ApplyRule::write_key() const {
  return WriteKey{.key = rule_write_key(name), .seen_version = resource_version};
}

void ApplyRule::touch(Touched& touched) const {
  touched.device(DeviceKey::dra(driver, pool, device_name));
  if (!same_card_as.empty()) touched.device(DeviceKey::dra(driver, pool, same_card_as));
}

ActionFacts DeleteRule::facts() const {
  return {.name = "DeleteRule",
          .kind = "DeviceTaintRule",
          .ns = {},
          .object = name,
          .uid = uid,
          .what = device,
          .queue = Queue::Taints,
          .is_notable = true,
          .policy = policy,
          .driver = key.scope};
}

std::string DeleteRule::words() const { return fmt::format("deletion of DeviceTaintRule {} for {}", name, device); }

std::optional<WriteKey> DeleteRule::write_key() const {
  return WriteKey{.key = rule_write_key(name), .seen_version = resource_version};
}

void DeleteRule::touch(Touched& touched) const { touched.device(key); }

ActionFacts PatchNodeTaint::facts() const {
  return {.name = "PatchNodeTaint",
          .kind = "Node",
          .ns = {},
          .object = node,
          .uid = {},
          .what = add ? "taint" : "untaint",
          .queue = Queue::Taints,
          .is_notable = true,
          .makes_taint = add,
          .policy = policy};
}

std::string PatchNodeTaint::asks_for(bool taint, const std::string& uid) {
  return fmt::format("{} on {}", taint ? "our taint" : "no taint of ours", uid);
}

std::string PatchNodeTaint::words() const {
  return fmt::format("{} {} for {}", add ? "taint on node" : "removal of the taint on node", node, device);
}

std::optional<WriteKey> PatchNodeTaint::write_key() const {
  return WriteKey{.key = node_write_key(node),
                  .seen_version = resource_version,
                  .asks = asks_for(add, uid),
                  .shown_by = {k8s::Kind::Node}};
}

void PatchNodeTaint::touch(Touched& touched) const { touched.node(node); }

}  // namespace dhc::taint
