#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

  /// How often something has been wished for: whoever has wished must be asked again in the next step.
  [[nodiscard]] std::uint64_t wishes() const { return count_; }

  /// Somebody is to be called then, and need not wish meanwhile.
  void call_at(MonoTime when, std::string who);
  /// Those who are to be called by now; each once.
  [[nodiscard]] std::set<std::string> take_calls();

  /// The next moment at which a step would do something by time alone.
  [[nodiscard]] std::optional<MonoTime> next() const;

 private:
  struct Wish {
    MonoTime due;
    bool wished = true;
  };
  std::map<std::string, Wish> wishes_;
  std::map<MonoTime, std::set<std::string>> calls_;
  std::optional<MonoTime> other_;
  std::uint64_t count_ = 0;
  MonoTime now_;
};

}  // namespace dhc::sim
