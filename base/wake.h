#pragma once
#include <optional>

#include "base/now.h"

namespace dhc {

/// The earliest of the times noted.
class Wake {
 public:
  void note(std::optional<MonoTime> at) {
    if (at && (!at_ || *at < *at_)) at_ = at;
  }
  /// Only what is still to come: what is past changes nothing by time alone.
  void note_after(MonoTime now, std::optional<MonoTime> at) {
    if (at && *at > now) note(at);
  }
  [[nodiscard]] std::optional<MonoTime> at() const { return at_; }

 private:
  std::optional<MonoTime> at_;
};

}  // namespace dhc
