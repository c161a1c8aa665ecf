#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "domain/limits/attempt.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// Of a write that is accepted each time and does not stay.
inline constexpr std::string_view kTakenAway =
    "the API server has accepted it several times, and it is not there: an admission webhook or another client takes "
    "it away";

/// That the brake holds this device on this node, what it stops and what it waits for; none: it does not. With a pod's
/// UID, also when another pod on the device is on trial.
[[nodiscard]] std::optional<HoldReason> held_by_brake(const PlanInput& input, const DeviceKey& key,
                                                      const std::string& node, std::string_view stopped,
                                                      std::string_view pod_uid = {});

/// That a watch on which the step rests has been silent for too long, or is known to be wrong (invariant I17); none:
/// all may be relied on. What is decided about the device rests on them from then on; without a name, what is decided
/// about all.
[[nodiscard]] std::optional<HoldReason> held_by_view(const PlanInput& input, const DeviceKey& key, KindSet kinds);

/// The words about the last failure of a request: what the server said, and how often it has been tried.
[[nodiscard]] std::string words_of_failure(const Attempt& failed);

/// Why a request that failed is not sent again yet, by the remedy of its error.
[[nodiscard]] HoldReason held_by_failure(const Attempt& failed);

/// Why a write of this key to an object seen at this version is not sent now, under `waiting` while an earlier one is
/// on its way or unseen; none: it may be sent. `asks`: as in Asks.
[[nodiscard]] std::optional<HoldReason> held_by_write(const PlanInput& input, const std::string& key,
                                                      const std::string& seen_version, Reason waiting,
                                                      std::string_view asks = {});

/// Whether the kubelet says Unknown of the device just now, where its driver itself has not called it bad: a kubelet
/// that knows nothing does not take a driver's word back.
[[nodiscard]] bool is_called_unknown(const World& world, const DeviceRecord& record);

/// Whether a pod's report calls the device bad by its policy: Unknown may be what one asks for.
[[nodiscard]] bool calls_bad(const AffectedPod& affected, const DeviceKey& key);

/// Whom a hold reason is about.
struct About {
  Subject subject;
  std::string device;          ///< As in Verdict.
  std::string policy;          ///< As in Verdict.
  std::string_view mode = {};  ///< As in Verdict.
  std::string_view gate = {};  ///< As in Verdict.
  WallTime since;              ///< As in Verdict.
};

/// The hold reason as people read it.
[[nodiscard]] Verdict verdict_of(About about, HoldReason hold, const Now& now);

}  // namespace dhc
