#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"
#include "cli/table.h"

namespace dhc::cli {

/// A pod that carries our condition, or an Event of ours, for users who may read their own namespace alone.
struct OwnPod {
  std::string name;
  std::string node;
  bool is_bad = false;  ///< The condition's status.
  std::string reason;
  std::string message;
  std::string since;  ///< lastTransitionTime, as it is.
  friend bool operator==(const OwnPod&, const OwnPod&) = default;
};

/// The pods with our condition in a list of pods, or in one pod; Malformed if it is neither.
[[nodiscard]] Result<std::vector<OwnPod>> own_pods(std::string_view body);

/// Our Events in a list of Events (core/v1), oldest first: `TIME TYPE REASON: message`.
[[nodiscard]] Result<std::vector<std::string>> own_events(std::string_view body);

[[nodiscard]] std::vector<Line> own_pods_lines(const std::vector<OwnPod>& pods, WallTime now);
[[nodiscard]] std::string own_pod_text(const std::vector<OwnPod>& pods, const std::vector<std::string>& events);

}  // namespace dhc::cli
