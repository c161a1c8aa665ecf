#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/now.h"

namespace dhc::sim {

/// Delays of controllers that decide from what is, not from what happened: a wish must stand for a while before it is
/// carried out. A wish that is not repeated in a whole step is forgotten.
class Timers {
 public:
  void begin(MonoTime now);
  /// Forgets the wishes that nobody had since `begin`.
  void end();

  /// True once `key` has been wished for `after`; stays true while it is wished.
  [[nodiscard]] bool ready(const std::string& key, Millis after);

  /// Something else will be due then.
  void wake_at(MonoTime when);

  /// The next moment at which a step would do something by time alone.
  [[nodiscard]] std::optional<MonoTime> next() const;

 private:
  struct Wish {
    MonoTime due;
    bool wished = true;
  };
  std::map<std::string, Wish> wishes_;
  std::optional<MonoTime> other_;
  MonoTime now_;
};

}  // namespace dhc::sim
