#include "app/trouble_log.h"

#include <algorithm>
#include <utility>

namespace dhc {

TroubleLog::TroubleLog(Log& log, std::string cluster) : log_(log), cluster_(std::move(cluster)) {}

void TroubleLog::note(k8s::Kind kind, const std::string& problem) {
  const std::lock_guard lock(mutex_);
  const auto known = [&](const std::string& text) {
    return std::ranges::any_of(problems_, [&](const auto& entry) { return entry.second == text; });
  };
  auto& mine = problems_[kind];
  if (mine == problem) return;
  const bool news = !problem.empty() && !known(problem);
  const std::string before = std::exchange(mine, problem);
  if (news) log_.warn("cannot watch", {{"kind", k8s::to_string(kind)}, {"cluster", cluster_}, {"error", problem}});
  if (problem.empty() && !known(before)) log_.info("watching again", {{"kind", k8s::to_string(kind)}});
}

void TroubleLog::note_back(k8s::Kind kind, std::uint64_t times, const std::string& how) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(went_back_[kind], times) == times) return;
  log_.warn("the data went back: everything of the kind is listed again",
            {{"kind", k8s::to_string(kind)}, {"cluster", cluster_}, {"why", how}});
}

}  // namespace dhc
