#include "reconcilers/notice/gang_notices.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/wake.h"
#include "domain/contract/names.h"
#include "reconcilers/notice/notice_annotation.h"
#include "reconcilers/shared/notice_answer.h"

namespace dhc::notice {

namespace {

bool was_taken_from(const k8s::Pod& pod, const PlanInput& input) {
  const auto text = k8s::find(pod.meta.annotations, kNoticeAnnotation).value_or("");
  return input.requests.notices().was_taken_back(pod.meta.uid, text);
}

}  // namespace

std::map<std::string, std::optional<Notice>> notices_of_gangs(const std::vector<ToldGang>& told,
                                                              const std::function<bool(const std::string&)>& is_open,
                                                              const PlanInput& input,
                                                              std::optional<MonoTime>& wake_at) {
  std::map<std::string, std::optional<Notice>> notices;
  if (input.policy.mode_cap != Mode::Enforce) return notices;
  for (const auto& uid : input.world.with_notice()) {
    const auto& record = *input.world.pod(uid);
    const auto shown = notice_on(record.pod);
    const bool speaks_of_other = shown && shown->evict && !shown->gang.empty() && !shown->with.empty();
    if (speaks_of_other && record.readable && is_live(record.pod) && !is_open(uid) &&
        !was_taken_from(record.pod, input))
      notices.emplace(uid, std::nullopt);
  }
  Wake wake;
  wake.note(wake_at);
  for (const auto& [unit, notice] : told) {
    for (const auto* member : unit->members) {
      const auto& pod = member->pod();
      const auto* condition = our_condition(pod);
      const bool speaks_for_itself = is_open(pod.meta.uid) || (condition != nullptr && condition->status == "True");
      if (member->goes_with == nullptr || !member->record->readable || speaks_for_itself) continue;
      auto own = notice_with(*member, *unit, notice, input, wake);
      auto& standing = notices[pod.meta.uid];
      const auto order = [](const Notice& of) { return std::tie(of.deadline, of.device); };
      if (!standing || order(own) < order(*standing)) standing = std::move(own);
    }
  }
  wake_at = wake.at();
  return notices;
}

}  // namespace dhc::notice
