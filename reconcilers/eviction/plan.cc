#include "reconcilers/eviction/plan.h"

#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/eviction/gates.h"
#include "reconcilers/eviction/going.h"
#include "reconcilers/eviction/queue.h"
#include "reconcilers/eviction/signal.h"
#include "reconcilers/eviction/waits.h"
#include "reconcilers/shared/rulings.h"

namespace dhc::eviction {

namespace {

class Planner {
 public:
  Planner(const Scene& scene, PlaceSearch& search) : scene_(scene), gates_(scene, search) {}

  Plan run() {
    for (const auto* exposure : fair_order(scene_)) consider(*exposure);
    for (const auto& [uid, attempt] : scene_.ledger.evictions()) say_ended(uid, attempt);
    planned_.charges = std::move(gates_.charges());
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  void consider(const Exposure& exposure) {
    Candidate candidate{.exposure = exposure, .unit = {.exposures = {&exposure}}};
    const auto held = gates_.ask(candidate);
    wake_.note(candidate.wake_at);
    for (const auto& remark : candidate.remarks) say(exposure, remark);
    if (held && !held->whole_unit) return say(exposure, held->ruling);
    for (const auto* member : candidate.unit.exposures) {
      if (held) say(*member, held->ruling);
      if (!held) send(*member);
    }
  }

  /// An evicted pod whose containers have ended, but which is still there, by a finalizer say: it holds its slot, and
  /// no exposure speaks of it any more.
  void say_ended(const std::string& uid, const EvictionAttempt& attempt) {
    const auto* record = scene_.world.pod(uid);
    if (record == nullptr || !record->pod.meta.deletion || is_live(record->pod)) return;
    if (attempt.state != Attempt::State::Accepted) return;
    tell({.subject = subject_of(record->pod),
          .device = to_string(attempt.key),
          .policy = {},
          .since = *record->pod.meta.deletion},
         departing(record->pod, scene_));
  }

  void send(const Exposure& exposure) {
    const auto& pod = exposure.pod();
    gates_.note_chosen(pod.meta.uid);
    planned_.actions.push_back(
        {.ns = pod.meta.ns,
         .name = pod.meta.name,
         .uid = pod.meta.uid,
         .seen_version = pod.meta.resource_version,
         .grace_period_seconds = exposure.policy->evict->grace_period_seconds,
         .shared_claim_uid = exposure.holding->shared ? exposure.holding->claim_uid : std::string(),
         .key = exposure.key,
         .device = to_string(exposure.key),
         .policy = exposure.policy->name,
         .signal = signal_of(exposure, scene_.world)});
    auto message = patience_ended(exposure, scene_);
    say(exposure, {.reason = Reason::Evicting, .message = message.value_or("all conditions are met"), .until = {}});
  }

  void say(const Exposure& exposure, const Ruling& ruling) {
    const auto subject = subject_of(exposure.pod());
    const auto device = to_string(exposure.key);
    if (!said_.insert(fmt::format("{}|{}|{}", subject.uid, device, to_string(ruling.reason))).second) return;
    tell({.subject = subject, .device = device, .policy = exposure.policy->name, .since = exposure.since.wall}, ruling);
  }

  void tell(About about, Ruling ruling) {
    wake_.note(ruling.until);
    planned_.verdicts.push_back(verdict_of(std::move(about), std::move(ruling), scene_.now));
  }

  const Scene& scene_;
  Gates gates_;
  Wake wake_;
  std::set<std::string> said_;
  Plan planned_;
};

}  // namespace

Plan plan(const Scene& scene, PlaceSearch& search) { return Planner(scene, search).run(); }

}  // namespace dhc::eviction
