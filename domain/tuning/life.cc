#include "domain/tuning/life.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "domain/history/device_record.h"
#include "domain/incidents/incident_store.h"

namespace dhc::tuning {

namespace {

Millis between(WallTime from, WallTime to) {
  return std::chrono::duration_cast<Millis>(std::max(to - from, WallTime::duration::zero()));
}

/// The trace has one clock.
Now now_at(WallTime wall) { return {.mono = MonoTime(between(WallTime(), wall)), .wall = wall}; }

/// Faults that overlap or touch are one: the device was bad all the time.
std::vector<Fault> apart(const std::vector<Fault>& faults) {
  std::vector<Fault> all;
  for (const Fault& fault : faults) {
    const WallTime told = fault.told_to.value_or(fault.to);
    if (all.empty() || fault.from > all.back().to) {
      all.push_back({fault.from, fault.to, told});
    } else {
      all.back().to = std::max(all.back().to, fault.to);
      all.back().told_to = std::max(*all.back().told_to, told);
    }
  }
  return all;
}

class Player {
 public:
  Player(const std::vector<Fault>& faults, const FaultTrace& trace, const Choice& choice, Witness witness)
      : faults_(faults), trace_(trace), choice_(choice), witness_(witness) {}

  Life play() {
    std::optional<WallTime> free = WallTime::min();
    for (std::size_t i = 0; i < faults_.size() && free; ++i) free = meet(i, *free);
    life_.quarantined = record_.past.is_lemon;
    return std::move(life_);
  }

 private:
  /// Whether a pod that has the device then has it while it is bad. What has no length is met at its moment.
  [[nodiscard]] bool is_bad(const Fault& fault, WallTime at) const {
    return at < fault.to || (!trace_.has_lengths && at <= fault.from);
  }

  /// Plays one fault, of a device that is free from then on; when it is free again, none: never.
  std::optional<WallTime> meet(std::size_t number, WallTime free) {
    const Fault& fault = faults_[number];
    WallTime at = std::max(fault.from, free);
    while (is_bad(fault, at)) {
      const auto opens = opening(at);
      const bool is_passing = trace_.has_lengths && opens >= fault.to;
      const WallTime told = *fault.told_to;
      life_.hits.push_back({.at = at,
                            .over = fault.to,
                            .is_first = life_.hits.empty(),
                            .same_fault = at > fault.from,
                            .is_sure = at <= told,
                            .waited = between(at, std::min(opens, told)),
                            .is_passing = is_passing});
      if (is_passing) return free;
      if (at - choice_.recover.healthy_for >= free) prove();
      open(opens);
      const auto ended = end(number, opens);
      life_.held.push_back({opens, std::min(ended.value_or(trace_.to), trace_.to)});
      if (!ended) return std::nullopt;
      at = free = *ended;
    }
    return free;
  }

  /// A pod has worked on the device for `healthyFor` since it was given back.
  void prove() {
    if (auto* trial = record_.incident.trial()) *trial = {};
  }

  /// One report is enough on probation; else the policy's time must pass.
  [[nodiscard]] WallTime opening(WallTime at) const {
    const auto probation = record_.incident.probation_until();
    if ((probation && at < *probation) || !trace_.has_lengths) return at;
    return at + choice_.after;
  }

  void open(WallTime at) {
    auto& past = record_.past;
    const auto probation = record_.incident.probation_until();
    const bool is_remembered = past.is_lemon || (probation && at < *probation);
    if (!is_remembered && is_negligible(past, choice_.recover, at)) past = {};
    past.policy = "tuned";
    if (is_same_break(record_.incident, at)) {
      count_without_penalty(past);
    } else {
      count_incident(past, choice_.recover, at);
    }
    IncidentFacts facts{.since = at, .opened_at = at, .taint = {}, .called_bad_at = at, .reporter = {}, .evidence = {}};
    facts.reporter.is_known = true;
    record_.incident.begin(std::move(facts), past.is_lemon);
  }

  /// When the incident ends that opened then; none: it never does by itself.
  std::optional<WallTime> end(std::size_t number, WallTime opened) {
    auto& evidence = record_.incident.facts()->evidence;
    WallTime at = opened;
    if (witness_ == Witness::Nobody) {
      evidence.take(EvidenceEvent::Silent, now_at(at));
    } else {
      // The next fault may come before the evidence is believed.
      at = std::max(opened, faults_[number].to);
      for (auto i = number + 1; i < faults_.size() && faults_[i].from < at + choice_.recover.healthy_for; ++i)
        at = std::max(at, faults_[i].to);
      evidence.take(EvidenceEvent::CalledHealthy, now_at(at));
    }
    while (true) {
      const auto recovery = recovery_of(record_, &choice_.recover, now_at(at));
      if (recovery.over) {
        if (recovery.on_probation) {
          record_.incident.hold_out(at, recovery.why, at + kProbation, recovery.is_unproven);
        } else {
          record_.incident.recover(at, recovery.why);
        }
        return at;
      }
      if (!recovery.at || *recovery.at <= at) return std::nullopt;
      at = *recovery.at;
    }
  }

  const std::vector<Fault>& faults_;
  const FaultTrace& trace_;
  const Choice& choice_;
  Witness witness_;
  DeviceRecord record_;
  Life life_;
};

}  // namespace

Life life_of(const BrokenDevice& device, const FaultTrace& trace, const Choice& choice, Witness witness) {
  const auto faults = apart(device.faults);
  return Player(faults, trace, choice, witness).play();
}

std::string_view to_string(Witness witness) {
  switch (witness) {
    case Witness::Nobody:
      return "Nobody";
    case Witness::Driver:
      return "Driver";
  }
  return "Unknown";
}

}  // namespace dhc::tuning
