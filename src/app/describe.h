#pragma once
#include <optional>
#include <string>
#include <variant>

#include "app/message.h"

namespace dhc {

// The one place that asks an action of any kind what it is; an alternative that does not say does not compile.

[[nodiscard]] inline ActionFacts facts_of(const Action& action) {
  return std::visit([](const auto& one) { return one.facts(); }, action);
}

/// What it does, in the words of the demo: `eviction of default/web-1`.
[[nodiscard]] inline std::string words_of(const Action& action) {
  return std::visit([](const auto& one) { return one.words(); }, action);
}

/// None: an eviction, a condition, an Event or a read, which have keys of their own.
[[nodiscard]] inline std::optional<WriteKey> write_key(const Action& action) {
  return std::visit([](const auto& one) { return one.write_key(); }, action);
}

}  // namespace dhc
