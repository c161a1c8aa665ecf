#pragma once
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "base/now.h"
#include "base/shared_text.h"
#include "base/string_index.h"
#include "k8s-client/model/job.h"

namespace dhc {

/// A pod of a Job that has failed, that is going where its Job counts it from then on, or that went without having been
/// seen to end.
struct LostPod {
  MonoTime at;            ///< When that was first seen.
  k8s::PodEnd end;        ///< As it was last seen.
  bool was_seen = false;  ///< To fail: with what code one has ended that went unseen, nobody knows.
};

/// The Jobs' pods that were lost lately: a Job's own watch may show a loss later than its pod's does, and a pod may
/// fail before its Job is known. By the Job's identity, which a Job that is restored keeps.
class LostPods {
 public:
  /// How long a loss is kept; longer than anybody asks for.
  static constexpr Millis kKept = std::chrono::minutes(1);

  /// A pod that is noted already is lost anew.
  void note(std::string_view job, const SharedText& uid, LostPod lost);
  /// It is there and runs after all, as after a restore.
  void take_back(std::string_view job, std::string_view uid);
  void forget(const Now& now);

  [[nodiscard]] bool empty() const { return by_job_.empty(); }
  /// By UID.
  [[nodiscard]] const std::map<SharedText, LostPod, std::less<>>& of(std::string_view job) const;

 private:
  void erase(std::string_view job, std::string_view uid, MonoTime until);

  StringIndex<std::map<SharedText, LostPod, std::less<>>> by_job_;
  std::deque<std::tuple<MonoTime, SharedText, SharedText>> order_;  // when each was noted, its Job, its UID
  std::map<SharedText, LostPod, std::less<>> nobody_;
};

}  // namespace dhc
