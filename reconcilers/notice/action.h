#pragma once
#include <optional>
#include <string>

#include "base/error.h"
#include "base/now.h"
#include "domain/contract/verdict.h"
#include "domain/limits/condition_attempt.h"
#include "reconcilers/shared/action_facts.h"

namespace dhc::notice {

/// Server-side apply of our condition on one pod's status, and of the notice beside it; what is not wanted is removed.
struct ApplyCondition {
  struct Wanted {
    bool status = true;
    std::string reason;
    std::string message;
    WallTime last_transition;
    std::optional<WallTime> noticed_at = {};  ///< Since when the condition says that the pod is told of its eviction.
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  std::string ns;
  std::string name;
  std::string uid;  ///< A precondition: another UID answers 422, read as Conflict.
  std::optional<Wanted> wanted;
  std::string notice = {};  ///< The annotation `device-health.io/notice`; empty: none is ours.
  /// For the request tracker.
  [[nodiscard]] PodWords said() const;
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const ApplyCondition&, const ApplyCondition&) = default;
};

/// Whether the API server refused the condition because another client owns it or the annotation beside it: then it is
/// tried without the annotation.
[[nodiscard]] bool is_refused_for_notice(const ApplyCondition& action, const Status& status);

/// One events.k8s.io/v1 Event; its name is derived from its content, so that sending it twice makes one Event.
struct EmitEvent {
  Subject regarding;  ///< `Pod` in its namespace, or `Node` (the Event lives in `default`).
  std::string name;   ///< Deterministic object name.
  bool warning = true;
  std::string reason;  ///< A word of the vocabulary.
  std::string action;  ///< Short CamelCase word: what was done or decided.
  std::string note;    ///< At most 1,024 bytes, no control characters.
  WallTime at;
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const EmitEvent&, const EmitEvent&) = default;
};

}  // namespace dhc::notice
