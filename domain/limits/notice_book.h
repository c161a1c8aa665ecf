#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/moment.h"

namespace dhc {

/// Notices that this process has sent, by pod UID. Until the pod shows one this says since when it has been told; the
/// pod's condition does so afterwards, also to the next process.
class NoticeBook {
 public:
  /// What was sent last: since when the pod is told of its eviction, or that it is told of none.
  void note_sent(const std::string& pod_uid, std::optional<WallTime> at, const Now& now);

  /// The annotation, as it was seen then, belongs to another client: ours is left out until another is seen.
  void note_contested(const std::string& pod_uid, std::string_view seen);

  /// The annotation, as it was seen then, was taken back, if it was ours.
  void note_taken_back(const std::string& pod_uid, std::string_view seen);
  [[nodiscard]] bool was_taken_back(const std::string& pod_uid, std::string_view seen) const;

  [[nodiscard]] std::optional<WallTime> sent_at(const std::string& pod_uid) const;
  /// How far the wall clock has jumped ahead (negative: back) since the notice was first sent: time that the pod has
  /// not had. Zero below five seconds, as a clock is set slowly, and for a notice that another process sent.
  [[nodiscard]] Millis clock_jump(const std::string& pod_uid, const Now& now) const;
  [[nodiscard]] bool is_contested(const std::string& pod_uid, std::string_view seen) const;

  /// Forgets the pods of which `is_gone` says so.
  template <class IsGone>
  void forget(const IsGone& is_gone) {
    std::erase_if(sent_, [&](const auto& entry) { return is_gone(entry.first); });
    std::erase_if(contested_, [&](const auto& entry) { return is_gone(entry.first); });
    std::erase_if(taken_back_, [&](const auto& entry) { return is_gone(entry.first); });
  }

 private:
  struct Sent {
    WallTime at;   // as the pod is told
    Moment first;  // when it was sent
  };
  std::map<std::string, Sent, std::less<>> sent_;
  std::map<std::string, std::string, std::less<>> contested_;  // the annotation as it was seen
  std::map<std::string, std::string, std::less<>> taken_back_;
};

}  // namespace dhc
