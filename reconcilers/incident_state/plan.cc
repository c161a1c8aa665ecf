#include "reconcilers/incident_state/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json_text.h"
#include "domain/contract/state_names.h"
#include "domain/incidents/ailing_state.h"
#include "domain/incidents/brake_state.h"
#include "domain/incidents/handed_state.h"
#include "domain/incidents/news_state.h"
#include "domain/incidents/state_text.h"
#include "domain/incidents/suspect_state.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::incident_state {

namespace {

void say(Planned<WriteState>& planned, const PlanInput& input, Reason reason, std::string message, WallTime since,
         std::optional<MonoTime> until = {}) {
  planned.verdicts.push_back(verdict_of({.subject = {.kind = "ConfigMap",
                                                     .ns = input.policy.own_namespace,
                                                     .name = std::string(kIncidentsName),
                                                     .uid = {}},
                                         .device = {},
                                         .policy = {},
                                         .since = since},
                                        {.reason = reason, .message = std::move(message), .until = until}, input.now));
}

/// When the next write may be sent; none: one is on its way. After an answer the World must have shown another version,
/// or have been waited for.
std::optional<MonoTime> next_write_at(const Attempt* attempt, const StateFile& file, Millis interval) {
  if (attempt == nullptr) return MonoTime::min();
  const bool moved_on = attempt->resource_version != file.version;
  switch (attempt->state) {
    case Attempt::State::Sending:
      return std::nullopt;
    case Attempt::State::Accepted:
      return attempt->at + (moved_on ? interval : kUnseen);
    case Attempt::State::Failed:
      return attempt->error.kind == ErrorKind::Conflict && moved_on ? attempt->at + interval : attempt->not_before;
  }
  return std::nullopt;
}

/// Evictions wait for what they are charged with: one write serves all that have come together until then. What was
/// written once and then changed by another hand is written again at the common pace, or two hands would race.
bool has_waiting_charge(const PlanInput& input, const StateFile& file) {
  return std::ranges::any_of(input.incidents.caps().charges(),
                             [&](const auto& entry) { return entry.second.revision > file.accepted; });
}

}  // namespace

Millis charge_interval(std::size_t size) {
  return std::max(Millis(static_cast<Millis::rep>(size * 1000 / kBurstBytesPerSecond)), kShortestChargeInterval);
}

Planned<WriteState> plan(const PlanInput& input, const StateFile& file) {
  Planned<WriteState> planned;
  if (input.policy.own_namespace.empty()) return planned;
  if (file.damage) {
    say(planned, input, Reason::StateDamaged,
        *file.damage + "; what could be read stands, the rest is rebuilt from rules, taints and conditions",
        file.since);
  }
  if (file.unread) {
    say(planned, input, Reason::StateNotRead,
        "it could not be read for 30 s: past incidents are not known, nothing is evicted or untainted and nothing is "
        "written",
        file.since);
    return planned;
  }
  if (file.newer_version) {
    say(planned, input, Reason::StateFromNewerVersion,
        fmt::format("its version {} is newer than this program: it is left as it is, nothing is evicted or untainted; "
                    "run the newer version, or delete the ConfigMap to begin without a past",
                    *file.newer_version),
        file.since);
    return planned;
  }
  if (file.left_out > 0) {
    say(planned, input, Reason::StateFull,
        fmt::format("{} devices do not fit into {} KiB: the lightest and oldest are left out", file.left_out,
                    kStateLimit / 1024),
        file.since);
  }
  const auto* attempt = input.requests.write(std::string(kStateKey));
  const bool for_charges = has_waiting_charge(input, file);
  // What was written for another reason, each five seconds at most, delays no charge.
  const auto pause = file.for_charges ? charge_interval(file.size) : Millis(0);
  const auto interval = for_charges ? pause : kWriteInterval;
  auto at = next_write_at(attempt, file, interval);
  if (at && for_charges) {
    const auto bytes = static_cast<std::int64_t>(file.size);
    at = std::max(*at, input.requests.state_bytes().ready_at(bytes, input.now.mono).value_or(*at));
  }
  if (attempt != nullptr && attempt->state == Attempt::State::Failed) {
    say(planned, input, Reason::StateNotSaved, words_of_failure(*attempt), wall_of(attempt->first_at, input.now), at);
  }
  if (file.saved == input.incidents.revision() || !at) return planned;
  if (input.now.mono < *at) {
    planned.wake_at = at;
    return planned;
  }
  auto sections = file.unknown;
  sections.push_back({.name = std::string(kBrakeSection), .text = brake_state_text(input.brake)});
  if (input.suspects != nullptr)
    sections.push_back({.name = std::string(kSuspectSection), .text = suspect_state_text(*input.suspects)});
  if (input.ailing != nullptr)
    sections.push_back({.name = std::string(kAilingSection), .text = ailing_state_text(*input.ailing)});
  if (input.handed != nullptr)
    sections.push_back({.name = std::string(kHandedSection), .text = handed_state_text(*input.handed)});
  if (input.news != nullptr)
    sections.push_back({.name = std::string(kNewsSection), .text = news_state_text(*input.news)});
  if (!file.imported.empty()) {
    sections.push_back({.name = std::string(kImportedSection), .text = json_text(file.imported)});
  }
  auto content = state_text(input.incidents, sections);
  planned.actions.push_back({.ns = input.policy.own_namespace,
                             .name = std::string(kIncidentsName),
                             .uid = file.uid,
                             .resource_version = file.version,
                             .text = std::move(content.text),
                             .revision = input.incidents.revision(),
                             .left_out = content.left_out,
                             .for_charges = for_charges,
                             .term = file.term});
  return planned;
}

}  // namespace dhc::incident_state
