#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/message.h"
#include "base/now.h"
#include "domain/contract/verdict.h"
#include "domain/policy/policy.h"

namespace dhc {

/// A reason that would hold for a subject.
struct Foreseen {
  Verdict verdict;             ///< As it was last worded.
  Millis begins{0};            ///< After now; 0: at once.
  std::optional<Millis> ends;  ///< None: it still holds at the horizon.
};

/// What a configuration would make of a cluster in which nothing else happens.
struct Foresight {
  std::vector<Foreseen> foreseen;  ///< By subject, device and when it begins.
  std::size_t nodes = 0;
  std::size_t pods = 0;  ///< That hold devices.
  std::size_t devices_unhealthy = 0;
};

/// Plays a configuration in observe mode against what was seen of a cluster, from now to the horizon, as if nothing in
/// it changed: `sight` is every watched kind's complete list, the state ConfigMap's too where it could be read, and
/// `earlier` what 0.1.0 has written down. What a policy would do is said as WouldTaint, WouldCredit, WouldEvict;
/// limits, caps and the brake may delay or forbid it. `read` answers reads of owners; no other action is carried out.
/// Times are right to the second.
[[nodiscard]] Foresight foresee(std::span<const k8s::Delivery> sight, const EarlierState& earlier, Policy policy,
                                const Now& now, Millis horizon,
                                const std::function<Outcome(const owners::ReadOwner&)>& read);

}  // namespace dhc
