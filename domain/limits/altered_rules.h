#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/contract/device_key.h"

namespace dhc {

class World;

/// A DeviceTaintRule that the server has stored otherwise than we sent it.
struct AlteredRule {
  DeviceKey key;  ///< The device that it was to be for.
  std::string uid;
  MonoTime at;  ///< When that was answered.
};

/// What becomes of our rules where an admission webhook changes them: each is taken back, and as long as that goes on
/// one is tried an hour. A rule that is not as we made it would count against no cap as ours does, and nobody would
/// take it away. Of this process alone.
class AlteredRules {
 public:
  /// How long no new rule is made after one that was stored otherwise.
  static constexpr Millis kPause = std::chrono::hours(1);
  /// And after one that came to nothing, which has told nothing about the webhook.
  static constexpr Millis kRetry = std::chrono::minutes(1);

  /// The answer to a rule of this name. `why`: what was changed, in words.
  void note_altered(const std::string& name, AlteredRule rule, std::string why, const Now& now);
  /// A new rule was stored as it was sent. True if others have waited for that.
  bool note_kept();
  /// Nothing is known of what became of a new rule, or it was not made. True if others have waited for its answer.
  bool note_failed(const Now& now);
  /// A new rule is on its way: the others wait for its answer.
  void note_sent(const Now& now);
  /// Those that stand no more are forgotten.
  void forget(const World& world, const Now& now);

  /// The rule of this name and UID as it was answered, or null.
  [[nodiscard]] const AlteredRule* find(const std::string& name, const std::string& uid) const;
  /// By name.
  [[nodiscard]] const std::map<std::string, AlteredRule>& all() const { return rules_; }
  /// When the next new rule may be tried; none: nothing is known to change them.
  [[nodiscard]] const std::optional<MonoTime>& again_at() const { return again_at_; }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::map<std::string, AlteredRule> rules_;
  std::optional<MonoTime> again_at_;
  std::string why_;
};

}  // namespace dhc
