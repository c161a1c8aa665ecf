#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "domain/cluster/world.h"
#include "domain/contract/device_key.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The parts of a match in the order in which they are asked: the later the first that fails, the nearer the policy is.
enum class MatchPart : std::uint8_t { Device, Namespace, Pod, Node, Health, Message };

/// Whether `resources` or `drivers` name the device; with neither every device is named.
[[nodiscard]] bool names_device(const Match& match, const DeviceKey& key);

/// The first selector that does not fit this device on this pod, whatever the device's state; none: all fit. What is
/// not known of Namespace or node has no labels.
[[nodiscard]] std::optional<MatchPart> selector_misfit(const Match& match, const World& world, const k8s::Pod& pod,
                                                       const DeviceKey& key);

/// Why the match does not mean a device that is Unhealthy with these words of its driver; none: it does.
[[nodiscard]] std::optional<MatchPart> unhealthy_misfit(const Match& match, std::string_view said);

/// Whether this state counts as a signal.
[[nodiscard]] bool wants(const Match& match, k8s::Health health);

/// Whether the driver's words fit `message`; any do without one.
[[nodiscard]] bool message_fits(const Match& match, std::string_view said);

/// What the match makes of the taints that the device's driver has put on it; none: nothing that it names. `open`: the
/// fault whose incident is open; null: none is.
[[nodiscard]] std::optional<TaintWord> taint_word(const Match& match, const World& world, const DeviceKey& key,
                                                  const Now& now, const KeptTaint* open = nullptr);

/// Whether a driver's taint calls the device bad that a policy names which enforces on its node, whoever may hold it.
[[nodiscard]] bool is_called_bad_by_taint(const Policy& policy, const World& world, const DeviceKey& key,
                                          const Now& now);

}  // namespace dhc
