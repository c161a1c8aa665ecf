#include "reconcilers/notice/next_steps.h"

#include <optional>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "reconcilers/shared/notice_terms.h"

namespace dhc::notice {

namespace {

/// It may stand for days, and a time that has passed would promise what does not come.
bool is_stop(Reason reason) { return reason == Reason::Paused || reason == Reason::Braked; }

/// The verdict on a brake counts devices: a condition that repeated it would be written with each of them.
std::string words_of_stop(const Verdict& verdict) {
  return verdict.reason == Reason::Braked ? "the brake stops new evictions here until it is released" : verdict.message;
}

}  // namespace

NextSteps::NextSteps(std::span<const Verdict> verdicts, const PlanInput& input) : input_(input) {
  for (const auto& verdict : verdicts) {
    if (verdict.subject.kind != "Pod") continue;
    if (info_of(verdict.reason).for_good) held_.try_emplace({verdict.subject.uid, verdict.device}, &verdict);
    if (is_stop(verdict.reason)) stopped_.try_emplace({verdict.subject.uid, verdict.device}, &verdict);
  }
}

const Verdict* NextSteps::find(const ByPodAndDevice& verdicts, const AffectedPod& affected) {
  if (verdicts.empty()) return nullptr;
  const auto device = to_string(affected.key);
  const auto found = verdicts.find({affected.pod().meta.uid, device});
  return found == verdicts.end() ? nullptr : found->second;
}

const Verdict* NextSteps::held_for_good(const AffectedPod& affected) const { return find(held_, affected); }

bool NextSteps::leads_to_eviction(const AffectedPod& affected) const {
  return affected.policy->evict && affected.mode == Mode::Enforce && held_for_good(affected) == nullptr;
}

std::string NextSteps::of(const AffectedPod& affected) const {
  if (!affected.policy->evict) return "nothing, the policy has no evict section";
  if (const auto* held = held_for_good(affected)) {
    return fmt::format("no eviction ({}): {}", to_string(held->reason), held->message);
  }
  const auto terms = notice_terms(affected, input_);
  // Of a pod that has been told, the notice says it; its deadline stands in the condition alone.
  const bool may_stop = affected.mode == Mode::Enforce && !terms;
  if (const auto* stop = may_stop ? find(stopped_, affected) : nullptr) {
    return fmt::format("no eviction ({}): {}", to_string(stop->reason), words_of_stop(*stop));
  }
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
