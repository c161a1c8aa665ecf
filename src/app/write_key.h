#pragma once
#include <optional>
#include <string>

#include "app/message.h"

namespace dhc {

/// The ledger's key of a write to one object, and the version of it that the World showed.
struct WriteKey {
  std::string key;
  std::string seen_version;
};

/// The key of an action; none: an eviction, a condition or an Event, which have keys of their own.
[[nodiscard]] std::optional<WriteKey> write_key(const Action& action);

/// Whether it makes a taint that was not there, of which `taints.perMinute` are allowed.
[[nodiscard]] bool makes_taint(const Action& action);

}  // namespace dhc
