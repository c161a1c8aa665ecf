#pragma once
#include <compare>
#include <string>

#include "k8s-client/model/job.h"
#include "k8s-client/model/pod.h"

namespace dhc {

/// What a verdict is about.
struct Subject {
  std::string kind;  ///< A kind of Kubernetes, `Brake`, `Configuration`, `Driver` (DRA) or `Resource`.
  std::string ns;
  std::string name;
  std::string uid;  ///< Empty if it has none, or it is not known.
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

[[nodiscard]] Subject subject_of(const k8s::Pod& pod);
[[nodiscard]] Subject subject_of(const k8s::Job& job);

}  // namespace dhc
