#pragma once
#include <optional>
#include <string>

#include "base/now.h"
#include "reconcilers/shared/action_facts.h"

namespace dhc::status {

/// Server-side apply of the status ConfigMap. At no version: it is nobody's memory, and the next one replaces it whole.
struct WriteStatus {
  std::string ns;
  std::string name;
  std::string text;
  WallTime at;  ///< When it was true.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const WriteStatus&, const WriteStatus&) = default;
};

}  // namespace dhc::status
