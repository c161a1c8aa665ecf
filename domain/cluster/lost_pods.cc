#include "domain/cluster/lost_pods.h"

#include <utility>

namespace dhc {

void LostPods::note(std::string_view job, const SharedText& uid, LostPod lost) {
  auto known = by_job_.find(job);
  if (known == by_job_.end()) known = by_job_.try_emplace(SharedText(job)).first;
  order_.emplace_back(lost.at, known->first, uid);
  known->second.insert_or_assign(uid, std::move(lost));
}

void LostPods::take_back(std::string_view job, std::string_view uid) { erase(job, uid, MonoTime::max()); }

void LostPods::erase(std::string_view job, std::string_view uid, MonoTime until) {
  const auto known = by_job_.find(job);
  if (known == by_job_.end()) return;
  auto& pods = known->second;
  const auto lost = pods.find(uid);
  if (lost != pods.end() && lost->second.at <= until) pods.erase(lost);
  if (pods.empty()) by_job_.erase(known);
}

void LostPods::forget(const Now& now) {
  while (!order_.empty() && now.mono - std::get<MonoTime>(order_.front()) >= kKept) {
    const auto [at, job, uid] = std::move(order_.front());
    order_.pop_front();
    erase(job, uid, at);
  }
}

const std::map<SharedText, LostPod, std::less<>>& LostPods::of(std::string_view job) const {
  const auto known = by_job_.find(job);
  return known == by_job_.end() ? nobody_ : known->second;
}

}  // namespace dhc
