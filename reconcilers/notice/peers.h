#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "domain/contract/notice_text.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// A pod that is told of its eviction, of which the other pods of its controller are to hear.
struct ToldPod {
  const k8s::Pod* pod = nullptr;
  Notice notice;
};

/// The most pods of one controller that hear of it: each is a write.
inline constexpr std::size_t kMostPeers = 256;

/// Whether a policy that tells this pod has `notice.scope: Owner`. `open`: its affected pods.
[[nodiscard]] bool asks_for_peers(const std::vector<const AffectedPod*>& open);

/// What the pods that are not to be evicted themselves are told of those that are, by UID; none: a notice that they
/// show is over. `is_open`: whether a pod has an open incident of its own, which speaks for itself.
[[nodiscard]] std::map<std::string, std::optional<Notice>> notices_of_peers(
    const std::vector<ToldPod>& told, const std::function<bool(const std::string&)>& is_open, const PlanInput& input);

}  // namespace dhc::notice
