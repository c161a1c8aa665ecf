#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc::year {

/// What one device does at one moment: exactly one of these.
enum class Use : std::uint8_t {
  Working,  ///< Its pod runs, on good devices alone.
  Redone,   ///< It worked, but the work was lost with its pod. Known only afterwards.
  Moving,   ///< Its pod starts or ends.
  Stuck,    ///< It is good; its pod holds a bad one too, and gets nowhere.
  Broken,   ///< It is bad, whoever holds it.
  Barred,   ///< It is good and free, and a taint or a cordon keeps new pods off.
  Idle,     ///< It is good, free and open to all.
};
inline constexpr std::size_t kUses = 7;

[[nodiscard]] std::string_view to_string(Use use);

/// Whose fault it is that a device does not work.
enum class Cause : std::uint8_t { Device, Server };
inline constexpr std::size_t kCauses = 2;

/// Every device's time, in exactly one class each: what is in the classes adds up to the devices times the time.
class Ledger {
 public:
  /// All devices are idle from `start` on.
  Ledger(std::size_t devices, MonoTime start);

  /// From `now` on the device is used so.
  void set(std::size_t device, Use use, Cause cause, MonoTime now);

  /// So much of what was booked as work of any devices was in vain.
  void redo(Millis worked, Cause cause);

  /// Books what has passed since the last change of each device.
  void close(MonoTime now);

  [[nodiscard]] Millis of(Use use, Cause cause) const { return sums_[index(use)][static_cast<std::size_t>(cause)]; }
  [[nodiscard]] Millis of(Use use) const { return of(use, Cause::Device) + of(use, Cause::Server); }
  /// All classes.
  [[nodiscard]] Millis sum() const;
  [[nodiscard]] Use use_of(std::size_t device) const { return entries_.at(device).use; }

 private:
  struct Entry {
    Use use = Use::Idle;
    Cause cause = Cause::Device;
    MonoTime since;
  };
  static std::size_t index(Use use) { return static_cast<std::size_t>(use); }
  void book(Entry& entry, MonoTime now);

  std::vector<Entry> entries_;
  std::array<std::array<Millis, kCauses>, kUses> sums_ = {};
};

}  // namespace dhc::year
