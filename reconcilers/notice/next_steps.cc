#include "reconcilers/notice/next_steps.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "reconcilers/shared/notice_terms.h"

namespace dhc::notice {

namespace {

bool is_on_its_way(Reason reason) {
  return reason == Reason::Evicting || reason == Reason::Evicted || reason == Reason::StuckTerminating;
}

}  // namespace

NextSteps::NextSteps(std::span<const Verdict> verdicts, const PlanInput& input) : input_(input) {
  for (const auto& verdict : verdicts) {
    if (verdict.subject.kind != "Pod") continue;
    if (info_of(verdict.reason).for_good) held_.try_emplace({verdict.subject.uid, verdict.device}, &verdict);
    // Until its end is seen nothing that begins now holds it.
    if (is_on_its_way(verdict.reason)) going_.insert(verdict.subject.uid);
    if (verdict.reason == Reason::Paused || verdict.reason == Reason::Braked)
      stopped_.try_emplace({verdict.subject.uid, verdict.device}, &verdict);
  }
}

const Verdict* NextSteps::find(const ByPodAndDevice& verdicts, const AffectedPod& affected) {
  if (verdicts.empty()) return nullptr;
  const auto device = to_string(affected.key);
  const auto found = verdicts.find({affected.pod().meta.uid, device});
  return found == verdicts.end() ? nullptr : found->second;
}

const Verdict* NextSteps::held_for_good(const AffectedPod& affected) const { return find(held_, affected); }

std::optional<Stop> NextSteps::stop(const AffectedPod& affected) const {
  if (!leads_to_eviction(affected) || is_going(affected.pod())) return std::nullopt;
  if (auto own = stop_of(affected, input_)) return own;
  // Of another pod that it goes with.
  const auto* verdict = find(stopped_, affected);
  if (verdict == nullptr) return std::nullopt;
  return Stop{.reason = verdict->reason,
              .words = verdict->reason == Reason::Braked ? std::string(kBraked) : verdict->message,
              .until = {}};
}

std::optional<MonoTime> NextSteps::changes_at(const AffectedPod& affected) const {
  const auto stopped = stop(affected);
  if (!stopped) return std::nullopt;
  const auto due = due_of(affected).at;
  if (input_.now.wall < due) return input_.now.mono + std::chrono::ceil<Millis>(due - input_.now.wall);
  return stopped->until;
}

NextSteps::Due NextSteps::due_of(const AffectedPod& affected) const {
  const auto terms = notice_terms(affected, input_);
  if (!terms) return {.at = eviction_due_at(affected), .noticed = {}};
  return {.at = terms->until, .noticed = terms->given.at};
}

bool NextSteps::leads_to_eviction(const AffectedPod& affected) const {
  return affected.policy->evict && affected.mode == Mode::Enforce && held_for_good(affected) == nullptr;
}

std::string NextSteps::of(const AffectedPod& affected) const {
  if (!affected.policy->evict) return "nothing, the policy has no evict section";
  if (const auto* held = held_for_good(affected)) {
    return fmt::format("no eviction ({}): {}", to_string(held->reason), held->message);
  }
  const auto due = due_of(affected);
  if (affected.mode != Mode::Enforce) {
    return fmt::format("nothing in mode {}; mode enforce would evict, due at {}", to_string(affected.mode),
                       format_rfc3339(due.at));
  }
  // A time that has passed would promise what does not come.
  const auto stopped = input_.now.wall < due.at ? std::nullopt : stop(affected);
  if (!stopped) return next_eviction(due.at, due.noticed);
  // When a pod was told stands in its condition alone.
  if (due.noticed)
    return fmt::format("{}; {}: {}", next_eviction(due.at, due.noticed), to_string(stopped->reason), stopped->words);
  return fmt::format("no eviction ({}): {}", to_string(stopped->reason), stopped->words);
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
