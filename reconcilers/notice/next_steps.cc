#include "reconcilers/notice/next_steps.h"

#include <optional>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "reconcilers/shared/notice_terms.h"

namespace dhc::notice {

NextSteps::NextSteps(std::span<const Verdict> verdicts, const PlanInput& input) : input_(input) {
  for (const auto& verdict : verdicts) {
    if (!info_of(verdict.reason).for_good || verdict.subject.kind != "Pod") continue;
    held_.try_emplace({verdict.subject.uid, verdict.device}, &verdict);
  }
}

const Verdict* NextSteps::held_for_good(const AffectedPod& affected) const {
  if (held_.empty()) return nullptr;
  const auto device = to_string(affected.key);
  const auto found = held_.find({affected.pod().meta.uid, device});
  return found == held_.end() ? nullptr : found->second;
}

bool NextSteps::leads_to_eviction(const AffectedPod& affected) const {
  return affected.policy->evict && affected.mode == Mode::Enforce && held_for_good(affected) == nullptr;
}

std::string NextSteps::of(const AffectedPod& affected) const {
  if (!affected.policy->evict) return "nothing, the policy has no evict section";
  if (const auto* held = held_for_good(affected)) {
    return fmt::format("no eviction ({}): {}", to_string(held->reason), held->message);
  }
  const auto terms = notice_terms(affected, input_);
  const auto due = terms ? terms->until : eviction_due_at(affected);
  if (affected.mode == Mode::Enforce) return next_eviction(due, terms ? std::optional(terms->given.at) : std::nullopt);
  return fmt::format("nothing in mode {}; mode enforce would evict, due at {}", to_string(affected.mode),
                     format_rfc3339(due));
}

ConditionLine NextSteps::line_of(const AffectedPod& affected) const {
  return {.device = to_string(affected.key),
          .since = affected.since.wall,
          .policy = affected.policy->name,
          .said = affected.said,
          .next = of(affected),
          .source = affected.source};
}

}  // namespace dhc::notice
