#pragma once
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc {

/// A bad device that a notice names.
struct NoticedDevice {
  std::string device = {};     ///< `to_string(DeviceKey)`
  std::string container = {};  ///< That holds it; empty: not known.
  friend bool operator==(const NoticedDevice&, const NoticedDevice&) = default;
};

/// What a pod's program is told by the annotation `device-health.io/notice`. Its words are those of EvictionRequest
/// where they mean the same. **Source:** KEP-4563.
struct Notice {
  bool evict = false;                     ///< `action`: the pod is to be evicted; else `none`, or `peer`:
  std::string peer = {};                  ///< the pod of the same controller that is to be evicted.
  std::int64_t number = 0;                ///< How many times this pod has been told of an eviction, this one included.
  std::string device = {};                ///< `to_string(DeviceKey)`; the one for which the pod goes first.
  std::string container = {};             ///< That holds it; empty: not known.
  std::string reason = {};                ///< A word of the vocabulary.
  std::string message = {};               ///< For people.
  WallTime at = {};                       ///< Since when the pod is told this, in whole seconds.
  std::optional<WallTime> deadline = {};  ///< Not evicted before, unless it answers; not with `none`.
  std::string retry = {};                 ///< What the eviction costs the pod's Job: `credited`, `ignored` or `none`.
  bool exit_is_safe = false;  ///< The program may end itself with a non-zero code, and its Job does not suffer.
  std::int64_t restarts = 0;  ///< Of the containers that hold the device, when the notice was given.
  std::string gang = {};      ///< The gang with which the pod goes, in words; empty: it goes alone.
  std::string with = {};      ///< The pod of the gang that holds the device; empty: this one does.
  std::vector<NoticedDevice> also = {};  ///< The pod's other bad devices, as many as there is room for.
  friend bool operator==(const Notice&, const Notice&) = default;
};

/// The most other devices that a notice names: each is tried for room.
inline constexpr std::size_t kMostAlso = 16;

/// The longest notice, in bytes.
inline constexpr std::size_t kLongestNotice = 2048;

/// The notice as one line of JSON, version 1: printable, and no longer than `kLongestNotice`.
[[nodiscard]] std::string notice_text(const Notice& notice);

/// What such a line says; none if it is not one of ours. A tenant may have written it: nothing rests on it that would
/// harm anybody but the pod itself.
[[nodiscard]] std::optional<Notice> read_notice(std::string_view text);

/// What is answered for a pod by the annotation `device-health.io/notice-response`.
struct NoticeAnswer {
  enum class Kind : std::uint8_t { Done, ExtendUntil };
  Kind kind = Kind::Done;
  std::optional<WallTime> time = {};  ///< Since when it is done, if it says so; until when it asks to stay.
  friend bool operator==(const NoticeAnswer&, const NoticeAnswer&) = default;
};

/// Reads `done`, `done: TIME` or `extend-until: TIME`, RFC 3339; else why it is none of them, and the remedy.
[[nodiscard]] std::expected<NoticeAnswer, std::string> read_answer(std::string_view text);

}  // namespace dhc
