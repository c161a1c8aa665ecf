#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"

namespace dhc {

/// A verdict in words: a reader of another version shows what it does not know.
struct StatusVerdict {
  std::string kind = {};  ///< Of its subject, as in Subject.
  std::string ns = {};
  std::string name = {};
  std::string node = {};  ///< Of the subject, if it is a pod on one.
  std::string job = {};   ///< Name of the Job that manages the subject, if it is a pod that has one.
  std::string device = {};
  std::string policy = {};
  std::string mode = {};
  std::string reason = {};
  std::string gate = {};  ///< Of an eviction: the gate that holds it.
  std::string message = {};
  WallTime since = {};
  std::optional<WallTime> next_at = {};
  friend bool operator==(const StatusVerdict&, const StatusVerdict&) = default;
};

/// One time that a device broke, with the driver's words.
struct StatusIncident {
  WallTime at = {};
  std::string said = {};
  friend bool operator==(const StatusIncident&, const StatusIncident&) = default;
};

/// A device that is not healthy, or has a history of incidents. All times are absolute, so that nothing is written
/// again because time passes.
struct StatusDevice {
  std::string device = {};  ///< As `to_string(DeviceKey)`.
  std::string node = {};    ///< Empty: not known, or network-attached.
  std::string
      health;  ///< `Healthy`, `Unhealthy`, `Unknown`, or `Unreported`: nobody holds it, so nobody reports on it.
  std::optional<WallTime> since = {};     ///< Since when it has not been healthy.
  std::string said = {};                  ///< The driver's words.
  std::string policy = {};                ///< That its last incident is of, or its holder's verdict.
  std::vector<std::string> holders = {};  ///< Pods that hold it, `namespace/name`.
  std::string taint = {};                 ///< `rule NAME`, `node` or `driver`: what keeps new pods off; empty: nothing.
  std::optional<WallTime> opened_at = {};  ///< Of the open incident; none: there is none.
  std::string acknowledged = {};           ///< How an operator has acknowledged that, a word; empty: not.
  bool quarantined = false;
  std::optional<WallTime> probation_until = {};
  std::optional<WallTime> closed_at = {};  ///< When the last incident ended,
  std::string closed_because = {};         ///< and why.
  std::int64_t incidents = 0;              ///< All that are remembered as a number.
  double penalty = 0;                      ///< As of `penalty_at`.
  std::optional<WallTime> penalty_at = {};
  std::vector<StatusIncident> history = {};  ///< Newest last; empty also where it was cut.
  /// It may be left out before anything is shortened: nobody calls it bad, and it has no open incident.
  bool is_minor = false;
  friend bool operator==(const StatusDevice&, const StatusDevice&) = default;
};

/// What readers need of a policy.
struct StatusPolicy {
  std::string name = {};
  std::string mode = {};  ///< Capped by the controller's.
  double quarantine_above = 0;
  Seconds half_life{0};
  friend bool operator==(const StatusPolicy&, const StatusPolicy&) = default;
};

/// That nothing is evicted, credited or newly tainted, at all or in a part of the cluster.
struct StatusPause {
  std::string why = {};
  std::optional<WallTime> until = {};  ///< None: until somebody ends it.
  friend bool operator==(const StatusPause&, const StatusPause&) = default;
};

/// What is missing for want of room.
struct StatusCut {
  bool histories = false;         ///< No device shows its history.
  std::size_t message_limit = 0;  ///< Messages end after so many bytes; 0: they are whole, unless `messages`.
  bool messages = false;          ///< There are no messages.
  std::size_t devices = 0;        ///< So many are left out,
  std::size_t verdicts = 0;       ///< and so many verdicts,
  std::size_t policies = 0;       ///< and policies.
  friend bool operator==(const StatusCut&, const StatusCut&) = default;
};

/// What the leader knows and decides, as the ConfigMap `device-health-status` tells it.
struct ClusterStatus {
  std::string program = {};  ///< The version of the controller that wrote it.
  std::string mode = {};     ///< The most that the controller does.
  std::optional<StatusPause> pause = {};
  std::vector<StatusPause> pauses = {};  ///< Of parts of the cluster.
  std::size_t devices_unhealthy = 0;
  std::size_t devices_unknown = 0;
  std::size_t incidents_open = 0;
  std::size_t quarantined = 0;
  std::vector<StatusPolicy> policies = {};
  std::vector<StatusVerdict> verdicts = {};
  std::vector<StatusDevice> devices = {};  ///< The most important first.
  StatusCut cut = {};
  friend bool operator==(const ClusterStatus&, const ClusterStatus&) = default;
};

/// The most that the status may take.
inline constexpr std::size_t kStatusLimit = 128UL * 1024;

/// The status as JSON of at most `limit` bytes; `cut` of what is given counts as left out already. Where room is short
/// go, in this order: every device's history; minor devices, the last first; the ends of messages behind 120 bytes; all
/// messages; then devices and verdicts, the last first, each device with the verdicts about it. What the controller,
/// its ConfigMaps, brakes, drivers and resources are told stands first, then each device with its verdicts, then the
/// other verdicts, then minor devices.
[[nodiscard]] std::string status_text(const ClusterStatus& status, std::size_t limit = kStatusLimit);

/// Reads what `status_text` made, also by a version that adds members. Malformed: it is none, or of a format that this
/// program does not know.
[[nodiscard]] Result<ClusterStatus> parse_status(std::string_view text);

}  // namespace dhc
