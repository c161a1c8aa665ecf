#pragma once
#include <string>
#include <vector>

namespace dhc::cli {

/// The part of the cluster that `pause` and `resume` mean: what all of these fit. Empty: everything.
struct PauseScope {
  std::vector<std::string> nodes = {};
  std::string node_selector = {};  ///< As kubectl takes it, without sets: `pool=a,!spot`.
  std::vector<std::string> drivers = {};
  std::vector<std::string> resources = {};
  std::vector<std::string> namespaces = {};
  friend bool operator==(const PauseScope&, const PauseScope&) = default;
};

}  // namespace dhc::cli
