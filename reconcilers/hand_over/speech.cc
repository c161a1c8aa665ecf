#include "reconcilers/hand_over/speech.h"

#include <utility>

#include "domain/cluster/node_subject.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::hand_over {

void Speech::say_each(const std::string& node, const std::vector<Ground>& grounds, const HoldReason& hold) {
  for (const auto& ground : grounds) {
    if (hold.reason == Reason::WouldHandOver) planned_.would.emplace_back(ground.record->key, ground.policy->name);
    say(node, to_string(ground.record->key), ground.policy->name, ground.policy, hold,
        ground.record->incident.facts()->since);
  }
}

void Speech::say(const std::string& node, std::string device, std::string policy_name, const DevicePolicy* policy,
                 HoldReason hold, WallTime since) {
  wake_.note_after(input_.now.mono, hold.until);
  planned_.verdicts.push_back(verdict_of({.subject = subject_of_node(input_.world, node),
                                          .device = std::move(device),
                                          .policy = std::move(policy_name),
                                          .mode = to_string(effective_mode(policy, input_.policy)),
                                          .since = since},
                                         std::move(hold), input_.now));
}

}  // namespace dhc::hand_over
