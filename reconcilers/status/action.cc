#include "reconcilers/status/action.h"

#include <fmt/format.h>

#include "domain/limits/write_keys.h"

namespace dhc::status {

ActionFacts WriteStatus::facts() const {
  return {.name = "WriteStatus",
          .kind = "ConfigMap",
          .ns = ns,
          .object = name,
          .uid = {},
          .what = {},
          .queue = Queue::StatusMap};
}

std::string WriteStatus::words() const { return fmt::format("status in ConfigMap {}/{}", ns, name); }

std::optional<WriteKey> WriteStatus::write_key() const {
  return WriteKey{.key = std::string(kStatusKey), .seen_version = {}};
}

}  // namespace dhc::status
