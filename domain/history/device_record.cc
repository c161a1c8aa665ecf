#include "domain/history/device_record.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/cluster/world.h"

namespace dhc {

namespace {

constexpr Millis kLongestHold = std::chrono::hours(7 * 24);
constexpr double kNegligiblePenalty = 0.1;

std::string duration_words(Millis time) {
  const auto seconds = std::chrono::ceil<Seconds>(time).count();
  if (seconds >= 3600 && seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  if (seconds >= 60 && seconds % 60 == 0) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

Recovery waits(std::string why, std::optional<WallTime> at = {}) {
  return {.over = false, .on_probation = false, .why = std::move(why), .at = at};
}

Recovery ends(std::string why) { return {.over = true, .on_probation = false, .why = std::move(why)}; }

bool is_rejecting(const DeviceRecord& record) { return record.key.source == DeviceKey::Source::RejectingNode; }

/// What is waited for, in words: of a device, and of a node whose kubelet rejects pods.
struct Words {
  std::string_view still_bad;
  std::string_view well;
  std::string_view silence;
};
Words words_of_record(const DeviceRecord& record) {
  if (is_rejecting(record)) {
    return {.still_bad = "its kubelet still rejects pods",
            .well = "a pod that came after the last rejection runs",
            .silence = "no pod has come since"};
  }
  return {.still_bad = "it is still reported bad",
          .well = "a pod that holds it reports Healthy",
          .silence = "nobody reports on it"};
}

Recovery after_acknowledgement(const IncidentFacts& facts, const RecoverRules& rules, const Now& now) {
  const auto quiet_since = facts.evidence.quiet_since();
  if (!quiet_since) return waits("an operator has acknowledged it; it is still reported bad");
  const WallTime at = *quiet_since + rules.healthy_for;
  if (now.wall >= at) return ends("acknowledged, and nobody has reported it bad since");
  return waits("an operator has acknowledged it", at);
}

}  // namespace

const DeviceRecord* find_record(const DeviceRecords& records, const DeviceKey& key) {
  const auto found = records.find(key);
  return found == records.end() ? nullptr : &found->second;
}

std::string node_of(const DeviceRecord& record, const World& world) {
  auto node = world.node_of(record.key);
  return node.empty() ? record.card.host.value_or("") : node;
}

double penalty_of(const DeviceHistory& past, const RecoverRules& rules, WallTime now) {
  const auto age = std::max(std::chrono::duration_cast<Millis>(now - past.penalty_at), Millis::zero());
  return past.penalty * std::exp2(-static_cast<double>(age.count()) /
                                  static_cast<double>(std::max(rules.half_life, Millis(1)).count()));
}

WallTime negligible_at(const DeviceHistory& past, const RecoverRules& rules) {
  const auto half_life = static_cast<double>(std::max(rules.half_life, Millis(1)).count());
  const auto age = half_life * std::log2(std::max(past.penalty / kNegligiblePenalty, 1.0));
  constexpr double kMost = 1e14;  // ms: what a damaged state says must fit into a time
  return past.penalty_at + Millis(static_cast<std::int64_t>(age < kMost ? age : kMost) + 1);
}

bool is_negligible(const DeviceHistory& past, const RecoverRules& rules, WallTime now) {
  return penalty_of(past, rules, now) < kNegligiblePenalty;
}

bool is_same_break(const Incident& incident, WallTime now) {
  const auto until = incident.probation_until();
  return until && now < *until && incident.trial()->is_unproven;
}

void count_without_penalty(DeviceHistory& past) { ++past.count; }

void count_incident(DeviceHistory& past, const RecoverRules& rules, WallTime now, Quarantine quarantine) {
  past.penalty = penalty_of(past, rules, now) + 1;
  past.penalty_at = now;
  ++past.count;
  const bool is_lemon = quarantine == Quarantine::AboveLimit && past.penalty > rules.quarantine_above;
  past.is_lemon = past.is_lemon || is_lemon;
}

void take_back_incident(DeviceHistory& past, const RecoverRules& rules, WallTime opened_at, WallTime now) {
  const auto opened = std::ranges::find(past.incidents, opened_at, &PastIncident::at);
  if (opened == past.incidents.end() || !opened->without_penalty) {
    DeviceHistory alone;
    alone.penalty = 1;
    alone.penalty_at = opened_at;
    past.penalty = std::max(0.0, penalty_of(past, rules, now) - penalty_of(alone, rules, now));
    past.penalty_at = now;
  }
  if (opened != past.incidents.end()) opened->without_penalty = true;
  past.count = std::max<std::int64_t>(past.count - 1, 0);
  past.is_lemon = past.is_lemon && past.penalty > rules.quarantine_above;
}

Millis hold_of(const DeviceHistory& past, const RecoverRules& rules) {
  Millis hold = rules.hold;
  for (std::int64_t i = 1; i < past.count && hold < kLongestHold; ++i) hold *= 2;
  // A policy may ask for more than the bound from the start.
  return std::min(hold, std::max(kLongestHold, rules.hold));
}

bool acknowledge(DeviceRecord& record, Acknowledged how) {
  if (record.incident.vouch(how).then != IncidentThen::Pay) return false;
  record.past.is_lemon = false;
  record.past.penalty = 0;
  return true;
}

LastWord last_word_of(const DeviceKey& key, const IncidentFacts& facts) {
  auto taken_back_at = facts.called_healthy_at;
  // Who has taken its own taint back had not forgotten it, unless it began about then: its start may be seen later.
  if (facts.driver_taint && facts.driver_taint->gone_at) {
    const WallTime at = *facts.driver_taint->gone_at + settle_of(key);
    taken_back_at = std::min(taken_back_at.value_or(at), at);
  }
  return {.called_bad_at = facts.called_bad_at, .by_start = facts.reporter.start, .taken_back_at = taken_back_at};
}

bool is_forgotten(const DeviceRecord& record) {
  const auto* facts = record.incident.facts();
  return facts != nullptr && !record.is_acknowledged() && (facts->reporter.began_at || facts->reporter.booted_at);
}

std::optional<std::string> why_forgotten(const DeviceRecord& record) {
  if (!is_forgotten(record)) return std::nullopt;
  const auto& reporter = record.incident.facts()->reporter;
  if (reporter.began_at) {
    return fmt::format("{} started at {} and has not reported it bad since: its Healthy is no evidence of a repair",
                       reporter.name, format_rfc3339(*reporter.began_at));
  }
  return fmt::format("its node has rebooted (seen at {}): what was known of it may be forgotten",
                     format_rfc3339(*reporter.booted_at));
}

Recovery recovery_of(const DeviceRecord& record, const RecoverRules* known, const Now& now) {
  const auto* open = record.incident.facts();
  if (open == nullptr) return waits("no incident is open");
  const auto& facts = *open;
  const RecoverRules defaults;
  const RecoverRules& rules = known == nullptr ? defaults : *known;
  if (record.is_acknowledged()) return after_acknowledgement(facts, rules, now);
  // What was adopted without a policy is held as long as a device without evidence.
  if (known == nullptr && !record.past.policy.empty())
    return waits("its policy is not known: only an operator's acknowledgement ends it");
  const auto words = words_of_record(record);
  if (record.is_quarantined()) return waits("quarantined until an operator acknowledges it");
  const auto quiet_since = facts.evidence.quiet_since();
  if (!quiet_since) return waits(std::string(words.still_bad));
  const auto healthy_since = facts.evidence.healthy_since();
  const auto evidence = duration_words(rules.healthy_for);
  std::optional<WallTime> first;
  std::string waiting_for;
  const auto note = [&](WallTime at, std::string why) {
    if (!first || at < *first) {
      first = at;
      waiting_for = std::move(why);
    }
  };
  const auto forgotten = why_forgotten(record);
  const std::string_view by_whom =
      facts.reporter.is_known || is_rejecting(record)
          ? ""
          : "; the pod of its driver or plugin is not known: its restart would not be seen";
  if (!forgotten && facts.driver_taint && facts.driver_taint->gone_at) {
    const WallTime at = *facts.driver_taint->gone_at + rules.healthy_for;
    if (now.wall >= at) return ends("its driver's own taint has been gone for " + evidence);
    note(at, fmt::format("its driver's own taint is gone; it must stay gone for {}{}", evidence, by_whom));
  }
  if (!forgotten && healthy_since) {
    if (now.mono >= healthy_since->mono + rules.healthy_for) {
      if (is_rejecting(record)) return ends("a pod that came after the last rejection has run for " + evidence);
      return ends("a pod that holds it has reported Healthy for " + evidence);
    }
    note(wall_of(healthy_since->mono + rules.healthy_for, now),
         fmt::format("{}, and must for {}{}", words.well, evidence, by_whom));
  }
  if (facts.reporter.booted_at && rules.probation) {
    const WallTime at = std::max(*facts.reporter.booted_at, *quiet_since) + rules.healthy_for;
    if (now.wall >= at) {
      return {.over = true,
              .on_probation = true,
              .why = fmt::format("its node has rebooted, and nobody has reported it bad for {}: on probation for 24 h",
                                 evidence)};
    }
    note(at, fmt::format("its node has rebooted: on probation if nobody reports it bad for {}", evidence));
  }
  if (first) return waits(std::move(waiting_for), first);
  const auto hold = hold_of(record.past, rules);
  const WallTime at = *quiet_since + hold;
  const auto held = fmt::format("held for {} (incident {})", duration_words(hold), record.past.count);
  const auto silence = forgotten.value_or(std::string(words.silence));
  if (!rules.probation) {
    return waits(silence + "; then: Keep waits for an operator");
  }
  if (now.wall < at) return waits(fmt::format("{}{} {}", silence, forgotten ? ";" : ":", held), at);
  return {.over = true,
          .on_probation = true,
          .is_unproven = !facts.evidence.was_well(),
          .why = held + " without evidence: on probation for 24 h"};
}

}  // namespace dhc
