#include "reconcilers/eviction/action.h"

#include <fmt/format.h>

namespace dhc::eviction {

ActionFacts EvictPod::facts() const {
  return {.name = "EvictPod",
          .kind = "Pod",
          .ns = ns,
          .object = name,
          .uid = uid,
          .what = device,
          .queue = Queue::Evictions,
          .is_notable = true,
          .policy = policy,
          .driver = key.source == DeviceKey::Source::Dra ? key.scope.view() : std::string_view(),
          .resource = key.source == DeviceKey::Source::Plugin ? key.scope.view() : std::string_view()};
}

std::string EvictPod::words() const { return fmt::format("eviction of {}/{}", ns, name); }

std::optional<WriteKey> EvictPod::write_key() const { return std::nullopt; }

}  // namespace dhc::eviction
