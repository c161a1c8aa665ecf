#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.h"
#include "domain/contract/cluster_status.h"
#include "k8s-client/model/lease.h"

namespace dhc::cli {

/// What was read of a controller: its status, and who leads.
struct Sight {
  ClusterStatus status = {};
  std::string ns = {};                      ///< Where the controller runs.
  std::string written_by = {};              ///< Which process wrote the status: its pod's name or the host's,
  std::optional<WallTime> written_at = {};  ///< and when.
  std::optional<std::string> leader = {};   ///< The Lease's holder; empty: nobody; none: it could not be read.
  std::optional<WallTime> lease_ends = {};  ///< Until when the Lease is held, if it is not renewed.
  WallTime now = {};                        ///< By the API server's clock.
  friend bool operator==(const Sight&, const Sight&) = default;
};

/// What the status ConfigMap says, by its entry and our annotations on it; who leads is not known yet. Malformed: it is
/// no status that this program knows.
[[nodiscard]] Result<Sight> sight_of(const std::string& ns, std::string_view text, std::string_view written_by,
                                     std::string_view written_at, WallTime now);

/// The same of the API server's answer to a GET.
[[nodiscard]] Result<Sight> parse_sight(const std::string& ns, std::string_view body, WallTime now);

/// Takes in the Lease; null: there is none.
void note_lease(Sight& sight, const k8s::Lease* lease);

/// The time by the API server's clock, from the Date header of an answer; else ours.
[[nodiscard]] WallTime time_of(std::optional<std::string_view> date, WallTime ours);

/// What a reader has to know before he believes the tables: that nobody leads, a pause, what is left out. One line
/// each, the worst first.
[[nodiscard]] std::vector<std::string> notes_of(const Sight& sight);

/// Who says so and when, for `-o json`.
[[nodiscard]] nlohmann::ordered_json controller_json(const Sight& sight);

/// A device's key as it is shown: what it is of, and its own name.
struct DeviceName {
  std::string scope;  ///< The driver or resource.
  std::string name;
};
[[nodiscard]] DeviceName name_of(const StatusDevice& device);

/// The verdict on what comes next for this pod (`namespace/name`) on this device: that of the gate that holds its
/// eviction; without a pod the one about the device itself. Null: there is none.
[[nodiscard]] const StatusVerdict* main_verdict(const ClusterStatus& status, const StatusDevice& device,
                                                std::string_view pod);

/// The next step that such a verdict means, in a few words with its reason: `evict (WaitingForEvictAfter)`.
[[nodiscard]] std::string next_step(const StatusVerdict& verdict);

}  // namespace dhc::cli
