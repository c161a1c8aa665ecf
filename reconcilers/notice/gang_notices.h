#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "domain/contract/notice_text.h"
#include "reconcilers/shared/gangs.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::notice {

/// A gang of which the pod on a bad device is told of its eviction.
struct ToldGang {
  const GangUnit* unit = nullptr;
  Notice notice;
};

/// What the pods of gangs are told that hold no bad device of their own, by UID; none: a notice that they show is over.
/// `is_open`: whether a pod has an open incident of its own, which speaks for itself. `wake_at`: when time alone would
/// change what is said.
[[nodiscard]] std::map<std::string, std::optional<Notice>> notices_of_gangs(
    const std::vector<ToldGang>& told, const std::function<bool(const std::string&)>& is_open, const PlanInput& input,
    std::optional<MonoTime>& wake_at);

}  // namespace dhc::notice
