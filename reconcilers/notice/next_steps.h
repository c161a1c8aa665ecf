#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "domain/contract/condition_text.h"
#include "domain/contract/verdict.h"
#include "domain/findings/affected_pod.h"
#include "reconcilers/notice/stops.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// What comes next for the pods on bad devices, as the verdicts of this turn have it. Without a countdown: the words
/// stay as long as the decision does, and a condition that holds them is not written again.
class NextSteps {
 public:
  /// `verdicts` and `input` must outlive it.
  NextSteps(std::span<const Verdict> verdicts, const PlanInput& input);

  /// `eviction, due at 2026-11-20T12:05:00Z`, with the time of the notice if there is one, or why there is none: what
  /// holds it until somebody changes something, and from then on a pause or a brake.
  [[nodiscard]] std::string of(const AffectedPod& affected) const;

  /// What the pod's condition, and the Event beside it, say of the device: the same words.
  [[nodiscard]] ConditionLine line_of(const AffectedPod& affected) const;

  /// Whether the pod is to be evicted, as things are.
  [[nodiscard]] bool leads_to_eviction(const AffectedPod& affected) const;

  /// The verdict that holds the pod until somebody changes something; null: none does.
  [[nodiscard]] const Verdict* held_for_good(const AffectedPod& affected) const;

  /// Whether its eviction is on its way.
  [[nodiscard]] bool is_going(const k8s::Pod& pod) const { return going_.contains(pod.meta.uid); }

  /// When time alone changes what comes next; none: it does not.
  [[nodiscard]] std::optional<MonoTime> changes_at(const AffectedPod& affected) const;

 private:
  struct Due {
    WallTime at;
    std::optional<WallTime> noticed;
  };
  [[nodiscard]] Due due_of(const AffectedPod& affected) const;
  [[nodiscard]] std::optional<Stop> stop(const AffectedPod& affected) const;

  using ByPodAndDevice = std::map<std::pair<std::string_view, std::string_view>, const Verdict*>;  // the pod's UID
  static const Verdict* find(const ByPodAndDevice& verdicts, const AffectedPod& affected);

  const PlanInput& input_;
  ByPodAndDevice held_;               // for good
  ByPodAndDevice stopped_;            // by a pause or a brake
  std::set<std::string_view> going_;  // UIDs
};

}  // namespace dhc::notice
