#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/moment.h"
#include "domain/cluster/card_counts.h"
#include "k8s-client/model/node.h"

namespace dhc {

/// Devices of one resource that running pods on one node hold, or ask for.
struct HeldDevices {
  std::int64_t total = 0;
  std::int64_t unhealthy = 0;  ///< Reported Unhealthy.
  std::int64_t cards = 0;      ///< Physical cards behind them.
  std::int64_t replicas = 1;   ///< As how many devices one card is offered, as far as the IDs tell.
  std::int64_t requested = 0;  ///< By pods that nobody has asked to end.
  friend bool operator==(const HeldDevices&, const HeldDevices&) = default;
};

/// Nobody has more devices than this: what a pod asks for beyond it adds nothing, and sums stay in range.
inline constexpr std::int64_t kMostRequested = std::int64_t{1} << 32;

/// What one node says of one device-plugin resource, and what that tells about the plugin.
struct ResourceBook {
  std::int64_t capacity = 0;
  std::int64_t allocatable = 0;
  std::int64_t largest_capacity = 0;  ///< Since this node's boot ID was first seen.
  HeldDevices held;
  std::int64_t replicas = 1;           ///< The most that was seen of one card at this capacity.
  std::int64_t replicas_capacity = 0;  ///< That capacity.
  bool plugin_dead = false;            ///< Capacity is 0 or below the devices held: its `Healthy` means nothing.
  /// When capacity fell to 0: a kubelet that began anew has forgotten what the plugin had said (seen on 1.37.1), and
  /// what it says since then is of a new registration.
  std::optional<Moment> fell_at;
  std::optional<MonoTime>
      rose_at;  ///< When capacity came back: every kubelet restart says Healthy about dead devices (seen on 1.37.1).
  std::optional<Moment> silent_since;    ///< Held and not Unhealthy outnumber allocatable.
  std::optional<Moment> vanished_since;  ///< Capacity is below `largest_capacity`.

  /// The physical cards that the node lists now, and those that running pods hold.
  [[nodiscard]] ListedCards cards() const;
  /// The most cards that the node is known to have had, those that its plugin has taken away among them.
  [[nodiscard]] std::int64_t largest_known() const;
};

/// How long after its capacity came back a plugin's `Healthy` is not believed.
inline constexpr Millis kPluginSettle = std::chrono::minutes(2);
/// How long a silence must last before it is a verdict.
inline constexpr Millis kSilence = Seconds(60);

/// One node's resources over time.
class NodeBook {
 public:
  /// Takes in the node (null: it is gone) and what its pods hold. Safe to repeat. Whether what its kubelet and plugins
  /// say of devices may now be worth more, or less, than before: mere numbers change nothing of that.
  bool update(const k8s::Node* node, const std::map<std::string, HeldDevices, std::less<>>& held, const Now& now);

  /// True if a Healthy report about `resource` may be believed now.
  [[nodiscard]] bool healthy_is_believable(std::string_view resource, const Now& now) const;

  /// When believing would change by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at(const Now& now) const;

  /// Whether a plugin is silent or a device has vanished, however short.
  [[nodiscard]] bool is_suspicious() const;

  [[nodiscard]] const std::map<std::string, ResourceBook, std::less<>>& resources() const { return resources_; }
  /// When another boot of the node was seen last; none: this process has seen one boot only.
  [[nodiscard]] std::optional<WallTime> booted_at() const { return booted_at_; }
  /// Since when this process has seen it cordoned without interruption; none: it is not.
  [[nodiscard]] std::optional<Moment> cordon_seen_at() const { return cordon_seen_at_; }

 private:
  std::string uid_;
  bool ready_ = false;
  std::string boot_id_;
  std::optional<WallTime> booted_at_;
  std::optional<Moment> cordon_seen_at_;
  std::map<std::string, ResourceBook, std::less<>> resources_;
};

}  // namespace dhc
