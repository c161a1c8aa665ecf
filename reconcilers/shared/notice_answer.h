#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/contract/notice_text.h"
#include "k8s-client/model/pod.h"

namespace dhc {

/// A notice as a pod was given it (`evict.notice`): what its answer is held against, in the plan and in the moment
/// before its eviction.
struct GivenNotice {
  WallTime at = {};           ///< Since when it is told, in whole seconds.
  WallTime deadline = {};     ///< Until when it has time, whatever it answers.
  Millis extend_up_to{0};     ///< How much more it may ask for.
  bool is_shown = false;      ///< The pod shows it, or as much of it as another client's annotation leaves room for.
  Millis clock_jump{0};       ///< How far the wall clock has jumped ahead since: time that the pod has not had.
  std::string device = {};    ///< `to_string(DeviceKey)`
  std::int64_t restarts = 0;  ///< Of the containers that hold it, as they were last seen.
  friend bool operator==(const GivenNotice&, const GivenNotice&) = default;
};

/// What has become of it.
struct AnsweredNotice {
  enum class State : std::uint8_t {
    Waits,      ///< The pod has time left.
    Done,       ///< It was answered that it may go.
    Restarted,  ///< A container that holds the device has been restarted since: what it had to save is saved, or lost.
    Passed,     ///< Its time is over.
  };
  State state = State::Waits;
  WallTime until = {};                        ///< The deadline, as far as the pod's own answer has moved it.
  std::optional<WallTime> asks_beyond = {};   ///< Until when it asks to stay, if that is more than it gets.
  std::optional<std::string> refused = {};    ///< Why its answer has no effect.
  std::optional<WallTime> effective_at = {};  ///< When time alone gives it an effect.
};

/// What has become of the notice, by the pod's annotations and the time.
[[nodiscard]] AnsweredNotice answered(const GivenNotice& given, const k8s::Pod& pod, WallTime now);

/// The notice that the pod shows; none: no text of ours.
[[nodiscard]] std::optional<Notice> notice_on(const k8s::Pod& pod);

}  // namespace dhc
