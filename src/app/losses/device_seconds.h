#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/now.h"
#include "domain/contract/device_key.h"

namespace dhc {

/// Why a device is of no use to anybody.
enum class LossCause : std::uint8_t {
  UnhealthyHeld,  ///< Bad, and a pod holds it still.
  KeptOff,        ///< Bad by its last word, nobody holds it, and our taint keeps new pods off.
  Quarantine,     ///< Likewise, until an operator acknowledges it.
  Recovering,     ///< Healthy by its last word, or its incident is over, and our taint still keeps new pods off.
  UnhealthyFree,  ///< Its incident goes on, nobody holds it, and no taint of ours keeps pods off.
};
inline constexpr std::array<LossCause, 5> kLossCauses = {LossCause::UnhealthyHeld, LossCause::KeptOff,
                                                         LossCause::Quarantine, LossCause::Recovering,
                                                         LossCause::UnhealthyFree};

/// The label of metrics: `unhealthy_held`, ...
[[nodiscard]] std::string_view to_string(LossCause cause);

/// By cause, in the order of `kLossCauses`.
using LostTime = std::array<Millis, kLossCauses.size()>;

/// How long devices were lost, by cause: the number of them, times how long it was that number. Costs what changes.
class DeviceSeconds {
 public:
  using CauseOf = std::function<std::optional<LossCause>(const DeviceKey&)>;

  /// Adds what has passed since the last call.
  void advance(MonoTime now);
  /// From now on the device is lost by this cause; none: it is not lost.
  void set(const DeviceKey& key, std::optional<LossCause> cause);
  /// Asks about these, and all that are lost.
  void look_at_all(std::set<DeviceKey> keys, const CauseOf& cause_of);
  /// None is lost from now on, as far as is known.
  void clear();

  /// As of the last `advance`.
  [[nodiscard]] const LostTime& lost() const { return lost_; }
  /// How many devices are lost now.
  [[nodiscard]] const std::array<std::int64_t, kLossCauses.size()>& devices() const { return counts_; }

 private:
  std::map<DeviceKey, LossCause> causes_;
  std::array<std::int64_t, kLossCauses.size()> counts_{};
  LostTime lost_{};
  std::optional<MonoTime> at_;  // up to when it is summed
};

}  // namespace dhc
