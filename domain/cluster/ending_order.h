#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"

namespace dhc {

/// In which order what is remembered of ended pods is forgotten: the oldest, and beyond the bound the oldest of the
/// namespace that has the most, so that no tenant takes the others' room.
class EndingOrder {
 public:
  explicit EndingOrder(std::size_t most) : most_(most) {}

  /// The UID that is to be forgotten for it; none: there was room.
  [[nodiscard]] std::optional<std::string> add(const std::string& ns, MonoTime at, std::string uid);
  /// The UIDs of those that ended by then, which are forgotten.
  [[nodiscard]] std::vector<std::string> take_until(MonoTime end);
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::size_t most_;
  std::size_t size_ = 0;
  std::map<std::string, std::set<std::pair<MonoTime, std::string>>> by_ns_;
};

}  // namespace dhc
