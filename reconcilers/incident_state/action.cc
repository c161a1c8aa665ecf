#include "reconcilers/incident_state/action.h"

#include <fmt/format.h>

#include "domain/limits/write_keys.h"

namespace dhc::incident_state {

ActionFacts WriteState::facts() const {
  return {.name = "WriteState",
          .kind = "ConfigMap",
          .ns = ns,
          .object = name,
          .uid = {},
          .what = {},
          .queue = Queue::State};
}

std::string WriteState::words() const { return fmt::format("state in ConfigMap {}/{}", ns, name); }

std::optional<WriteKey> WriteState::write_key() const {
  return WriteKey{.key = std::string(kStateKey), .seen_version = resource_version};
}

}  // namespace dhc::incident_state
