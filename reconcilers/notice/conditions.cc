#include "reconcilers/notice/conditions.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/condition_text.h"

namespace dhc::notice {

namespace {

/// A driver that changes its words every second must not make us write every second.
constexpr Millis kRewordInterval = Seconds(60);

std::string next_step(const DevicePolicy& policy) {
  if (!policy.evict) return "nothing, the policy has no evict section";
  const auto after = std::chrono::ceil<Seconds>(policy.evict->after).count();
  return after == 0 ? std::string("eviction") : fmt::format("eviction {} s after the incident opened", after);
}

class Planner {
 public:
  explicit Planner(const Scene& scene) : scene_(scene) {}

  Planned<ApplyCondition> run() {
    std::map<std::string, std::vector<const Exposure*>> open;
    for (const auto& exposure : scene_.exposures) {
      if (exposure.mode != Mode::Enforce) {
        watched_only_.insert(exposure.pod().meta.uid);
      } else if (exposure.open) {
        open[exposure.pod().meta.uid].push_back(&exposure);
      }
    }
    for (const auto& [uid, exposures] : open) raise(exposures);
    for (const auto& uid : scene_.world.with_condition()) {
      if (!open.contains(uid) && !watched_only_.contains(uid)) settle(*scene_.world.pod(uid));
    }
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  void raise(const std::vector<const Exposure*>& exposures) {
    const auto& pod = exposures.front()->pod();
    if (!exposures.front()->record->readable) return;  // nothing is decided on a version that could not be read
    std::vector<ConditionLine> lines;
    WallTime since = exposures.front()->since.wall;
    for (const auto* exposure : exposures) {
      since = std::min(since, exposure->since.wall);
      lines.push_back({.device = to_string(exposure->key),
                       .since = exposure->since.wall,
                       .policy = exposure->policy->name,
                       .said = exposure->said,
                       .next = next_step(*exposure->policy)});
    }
    std::ranges::sort(lines, {}, &ConditionLine::device);
    const auto* seen = our_condition(pod);
    const auto message = condition_message(lines);
    if (seen != nullptr && seen->status == "True" && seen->message == message) return;
    const bool only_words =
        seen != nullptr && seen->status == "True" && std::ranges::all_of(lines, [&](const ConditionLine& line) {
          return since_in_condition(seen->message, line.device).has_value();
        });
    const auto* attempt = scene_.ledger.condition(pod.meta.uid);
    if (only_words && attempt != nullptr && scene_.now.mono - attempt->at < kRewordInterval) {
      return wake_.note(attempt->at + kRewordInterval);
    }
    apply(pod, ApplyCondition::Wanted{
                   .status = true, .reason = "DeviceUnhealthy", .message = message, .last_transition = since});
  }

  /// The pod has our condition and no open incident: has the device recovered, or is nothing known of it any more?
  void settle(const PodRecord& record) {
    const auto& pod = record.pod;
    const auto* seen = our_condition(pod);
    if (seen->status != "True" || !is_live(pod) || scene_.policy.mode_cap != Mode::Enforce) return;
    bool holds_any = false;
    std::string recovered;
    for (const auto& holding : record.holdings) {
      const auto device = to_string(holding.key);
      if (!since_in_condition(seen->message, device)) continue;
      holds_any = true;
      const auto* policy = policy_for(scene_.world, scene_.policy, pod, holding.key);
      if (policy != nullptr && policy->mode != Mode::Enforce) return;
      const auto* state = scene_.world.tracker().find(holding.key);
      if (state == nullptr || !state->has_source || state->health == k8s::Health::Unknown)
        return;  // not known: it stays
      if (state->health == k8s::Health::Unhealthy) {
        if (policy == nullptr) break;  // nobody asks us to speak of it any more
        return;
      }
      if (!recovered.empty()) recovered += '\n';
      recovered += device + " healthy since " +
                   format_rfc3339(state->recovered_at ? state->recovered_at->wall : scene_.now.wall);
    }
    if (holds_any && recovered.empty()) return apply(pod, std::nullopt);
    if (!holds_any) return apply(pod, std::nullopt);
    apply(pod, ApplyCondition::Wanted{
                   .status = false, .reason = "Recovered", .message = recovered, .last_transition = scene_.now.wall});
  }

  void apply(const k8s::Pod& pod, std::optional<ApplyCondition::Wanted> wanted) {
    if (pod.meta.deletion) return;
    if (const auto* attempt = scene_.ledger.condition(pod.meta.uid)) wake_on(*attempt);
    if (!scene_.ledger.may_send_condition(pod, scene_.now)) return;
    planned_.actions.push_back(
        {.ns = pod.meta.ns, .name = pod.meta.name, .uid = pod.meta.uid, .wanted = std::move(wanted)});
  }

  void wake_on(const Attempt& attempt) {
    if (attempt.state == Attempt::State::Failed && attempt.not_before > scene_.now.mono) wake_.note(attempt.not_before);
  }

  const Scene& scene_;
  Wake wake_;
  std::set<std::string> watched_only_;
  Planned<ApplyCondition> planned_;
};

}  // namespace

Planned<ApplyCondition> plan_conditions(const Scene& scene) { return Planner(scene).run(); }

}  // namespace dhc::notice
