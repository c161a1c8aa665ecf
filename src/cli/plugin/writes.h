#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/now.h"
#include "cli/plugin/pause_scope.h"
#include "cli/plugin/sight.h"
#include "k8s-client/protocol/request.h"

namespace dhc::cli {

/// An object whose annotations an operator writes.
struct Target {
  std::string path;  ///< Its API path.
  std::string uid;   ///< As it was read: another object of the name is left alone (Conflict).
  std::string what;  ///< `node node-a`, for people.
};

/// Annotations by name; none: removed.
using Annotations = std::vector<std::pair<std::string_view, std::optional<std::string>>>;

/// Merge patch of annotations; `dry_run`: the server only checks it.
[[nodiscard]] k8s::Request build_annotations(const Target& target, const Annotations& annotations, bool dry_run);

/// The annotation of a pause of a part: the same for the same part.
[[nodiscard]] std::string pause_annotation(const PauseScope& scope);

/// Its value, as the controller reads it. Invalid, in the controller's own words, if it would refuse it.
[[nodiscard]] Result<std::string> pause_value(const PauseScope& scope, WallTime until, std::string_view reason,
                                              std::string_view by);

/// The annotations of pauses of parts on an object as it was read, by name.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> pauses_on(std::string_view body);

/// Whether such a value says that its pause has ended; false: it goes on, or cannot be read.
[[nodiscard]] bool is_over(const std::string& value, WallTime now);

/// Asks the API server who we are; and its answer: empty, if it does not say.
[[nodiscard]] k8s::Request build_who_am_i();
[[nodiscard]] std::string read_who_am_i(std::string_view body);

/// Paths of what may be annotated; Invalid if a name does not fit in a path.
[[nodiscard]] Result<std::string> node_path(std::string_view name);
[[nodiscard]] Result<std::string> config_map_path(std::string_view ns, std::string_view name);
/// Of a Deployment, ReplicaSet, StatefulSet, Job or pod, whose kind is written in small letters.
[[nodiscard]] Result<std::string> workload_path(std::string_view kind, std::string_view ns, std::string_view name);
[[nodiscard]] Result<std::string> rule_path(std::string_view api_version, std::string_view name);

/// The UID in an object as it was read; Malformed if there is none.
[[nodiscard]] Result<std::string> uid_of(std::string_view body);

/// The time that an operator vouches up to: the present one, by the earlier of the two clocks, because a time ahead of
/// the controller's is refused. `date`: the Date header of the server's answer, if it had one.
[[nodiscard]] WallTime vouched_until(std::optional<std::string_view> date, WallTime ours);

/// What `ack device NAME` is to write: the rule that taints it. An error in words where an annotation of the rule
/// cannot do it.
[[nodiscard]] Result<std::string> rule_to_acknowledge(const Sight& sight, std::string_view name);

/// Whether `ack KIND` takes the kind: the controller reads the annotation on such objects, and on no others.
[[nodiscard]] bool is_workload_kind(std::string_view kind);

/// What the status says of the workload, or of a workload above the pod, as a suspect; empty: nothing.
[[nodiscard]] std::string suspicion_of(const Sight& sight, std::string_view kind, std::string_view ns,
                                       std::string_view name);

/// The open incidents on the node's devices that an acknowledgement up to `until` ends, `DEVICE (opened TIME)`.
[[nodiscard]] std::vector<std::string> acknowledged_by_node(const Sight& sight, std::string_view node, WallTime until);

/// The most that a pause may last.
inline constexpr Millis kLongestPause = std::chrono::hours(24 * 30);

}  // namespace dhc::cli
