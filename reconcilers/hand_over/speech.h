#pragma once
#include <string>
#include <vector>

#include "base/wake.h"
#include "reconcilers/hand_over/cases.h"
#include "reconcilers/hand_over/plan.h"

namespace dhc::hand_over {

/// What a plan says of nodes and devices, and when that would change by time alone.
class Speech {
 public:
  Speech(const PlanInput& input, Plan& planned) : input_(input), planned_(planned) {}

  /// Of each ground the same.
  void say_each(const std::string& node, const std::vector<Ground>& grounds, const HoldReason& hold);
  /// Of what ends, or stands although nothing asks for it; `device` may be empty.
  void say(const std::string& node, std::string device, std::string policy_name, const DevicePolicy* policy,
           HoldReason hold, WallTime since);
  [[nodiscard]] Wake& wake() { return wake_; }

 private:
  const PlanInput& input_;
  Plan& planned_;
  Wake wake_;
};

}  // namespace dhc::hand_over
