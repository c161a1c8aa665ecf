#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "domain/contract/notice_text.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// How long a pod that is told before its eviction (`evict.notice`) may stay, and what it has answered.
struct NoticeTerms {
  enum class State : std::uint8_t {
    Waits,      ///< The pod has time left.
    Done,       ///< It was answered that it may go.
    Restarted,  ///< A container that holds the device has been restarted since: what it had to save is saved, or lost.
    Passed,     ///< Its time is over.
  };
  WallTime at = {};           ///< Since when it is told, in whole seconds.
  bool is_shown = false;      ///< The pod shows it, or as much of it as another client's annotation leaves room for.
  bool is_contested = false;  ///< The annotation belongs to another client: the program reads that one's words.
  WallTime until = {};        ///< The deadline, as far as the pod's own answer has moved it.
  State state = State::Waits;
  std::optional<WallTime> asks_beyond = {};   ///< Until when it asks to stay, if that is more than it gets.
  std::optional<std::string> refused = {};    ///< Why its answer has no effect.
  std::optional<WallTime> effective_at = {};  ///< When time alone gives it an effect.
};

/// The terms of an affected pod; none: its policy gives no notice, or the incident is not open.
///
/// The deadline counts from when the pod was told. The condition remembers that, and not the notice, which a tenant may
/// change; it lies between the incident's opening and now, whatever is read. Where nothing is written to pods (observe)
/// it counts from the opening.
[[nodiscard]] std::optional<NoticeTerms> notice_terms(const AffectedPod& affected, const PlanInput& input);

/// The notice that the pod shows; none: no text of ours.
[[nodiscard]] std::optional<Notice> notice_on(const k8s::Pod& pod);

/// When the incident opened, in whole seconds; never later after a restart, which reads whole seconds in the condition.
[[nodiscard]] WallTime opened_at(const AffectedPod& affected);

/// When the policy wants the pod gone, in whole seconds as the condition remembers its beginning: the same after a
/// restart.
[[nodiscard]] WallTime eviction_due_at(const AffectedPod& affected);

}  // namespace dhc
