#include "reconcilers/status/summary.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/printable.h"
#include "base/version.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/pauses.h"
#include "domain/incidents/card_memory.h"

namespace dhc::status {

namespace {

constexpr std::size_t kLongestSaid = 400;
constexpr std::size_t kMostHolders = 8;
constexpr std::size_t kMostPauses = 20;

/// What is urgent comes first.
enum class Rank : std::uint8_t { OpenHeld, BadHeld, Open, Quarantined, Bad, Unknown, Probation, Past };

struct Entry {
  Rank rank = Rank::Past;
  WallTime since;
  const DeviceKey* key = nullptr;
  const DeviceRecord* record = nullptr;
  const DeviceState* state = nullptr;
};

bool comes_first(const Entry& a, const Entry& b) {
  return std::tie(a.rank, b.since, *a.key) < std::tie(b.rank, a.since, *b.key);
}

class Summary {
 public:
  Summary(const PlanInput& input, std::span<const Verdict> verdicts) : input_(input), verdicts_(verdicts) {}

  ClusterStatus run() {
    status_.program = std::string(version());
    status_.mode = to_string(input_.policy.mode_cap);
    if (auto pause = pause_of(input_.policy, input_.now.wall)) {
      status_.pause = StatusPause{.why = std::move(pause->why), .until = pause->until};
    }
    for (auto& pause : standing_pauses(input_.policy, input_.now.wall)) {
      if (status_.pauses.size() == kMostPauses) break;
      status_.pauses.push_back({.why = std::move(pause.why), .until = pause.until});
    }
    add_policies();
    add_devices();
    add_verdicts();
    return std::move(status_);
  }

 private:
  void add_policies() {
    for (const auto& one : input_.policy.policies) {
      status_.policies.push_back({.name = one.name,
                                  .mode = std::string(to_string(effective_mode(&one, input_.policy))),
                                  .quarantine_above = one.recover.quarantine_above,
                                  .half_life = std::chrono::duration_cast<Seconds>(one.recover.half_life)});
    }
  }

  [[nodiscard]] Entry entry_of(const DeviceKey& key, const DeviceRecord* record, const DeviceState* state) const {
    const bool is_held = state != nullptr && !state->holders.empty();
    const bool is_bad = state != nullptr && state->health == k8s::Health::Unhealthy;
    const bool is_unknown = state != nullptr && state->health == k8s::Health::Unknown;
    Entry entry{.rank = Rank::Past, .since = {}, .key = &key, .record = record, .state = state};
    const auto* facts = record == nullptr ? nullptr : record->incident.facts();
    const auto* end = record == nullptr ? nullptr : record->incident.end();
    const auto probation = record == nullptr ? std::nullopt : record->incident.probation_until();
    if (facts != nullptr) {
      entry.rank = is_held ? Rank::OpenHeld : Rank::Open;
      entry.since = facts->since;
    } else if (is_bad) {
      entry.rank = is_held ? Rank::BadHeld : Rank::Bad;
    } else if (record != nullptr && record->past.is_lemon) {
      entry.rank = Rank::Quarantined;
    } else if (probation && *probation > input_.now.wall) {
      entry.rank = Rank::Probation;
    } else if (is_unknown) {
      entry.rank = Rank::Unknown;
    }
    if (entry.since == WallTime{} && state != nullptr) entry.since = since_of(*state).value_or(WallTime{});
    if (entry.since == WallTime{} && end != nullptr) entry.since = end->at;
    return entry;
  }

  static std::optional<WallTime> since_of(const DeviceState& state) {
    if (state.unhealthy_since) return state.unhealthy_since->wall;
    if (state.not_healthy_since) return state.not_healthy_since->wall;
    return std::nullopt;
  }

  void add_devices() {
    std::vector<Entry> entries;
    for (const auto& [key, record] : input_.incidents.records()) {
      entries.push_back(entry_of(key, &record, input_.world.tracker().find(key)));
      if (record.is_open()) ++status_.incidents_open;
      if (record.past.is_lemon) ++status_.quarantined;
    }
    for (const auto& key : input_.world.tracker().not_healthy()) {
      const auto* state = input_.world.tracker().find(key);
      ++(state->health == k8s::Health::Unhealthy ? status_.devices_unhealthy : status_.devices_unknown);
      if (input_.incidents.find(key) == nullptr) entries.push_back(entry_of(key, nullptr, state));
    }
    const auto kept = std::min(entries.size(), kMostDevices);
    std::ranges::partial_sort(entries, entries.begin() + static_cast<std::ptrdiff_t>(kept), comes_first);
    status_.cut.devices = entries.size() - kept;
    entries.resize(kept);
    for (const auto& entry : entries) add_device(entry);
  }

  void add_device(const Entry& entry) {
    const auto& key = *entry.key;
    StatusDevice device{.device = to_string(key),
                        .node = input_.world.node_of(key),
                        .health = "Unreported",
                        .since = entry.since,
                        .said = {},
                        .policy = {}};
    device.is_minor = entry.rank >= Rank::Unknown;
    if (const auto* state = entry.state) {
      if (state->has_source) device.health = k8s::to_string(state->health);
      device.said = printable_cut(state->message, kLongestSaid);
      for (const auto& uid : state->holders) {
        const auto* record = input_.world.pod(uid);
        if (record == nullptr || device.holders.size() == kMostHolders) continue;
        device.holders.push_back(record->pod.meta.ns + "/" + record->pod.meta.name);
      }
      std::ranges::sort(device.holders);
    }
    if (entry.record != nullptr) add_record(device, *entry.record);
    device.taint = taint_on(key, entry.record);
    status_.devices.push_back(std::move(device));
  }

  void add_record(StatusDevice& device, const DeviceRecord& record) const {
    device.node = node_of(record, input_.world);
    const auto& past = record.past;
    device.policy = past.policy;
    if (const auto* facts = record.incident.facts()) {
      device.opened_at = facts->opened_at;
      device.acknowledged = words_of(record.incident.acknowledged());
      if (device.said.empty() && !past.incidents.empty()) device.said = past.incidents.back().reason;
    } else if (const auto* end = record.incident.end()) {
      device.closed_at = end->at;
      device.closed_because = printable_cut(end->why, kLongestSaid);
      const auto until = record.incident.probation_until();
      if (until && *until > input_.now.wall) device.probation_until = until;
    }
    device.quarantined = past.is_lemon;
    device.incidents = past.count;
    const auto card = penalty_of_card(input_.incidents, record, input_.world, input_.policy);
    device.penalty = card.penalty;
    device.penalty_at = card.at;
    for (const auto& one : past.incidents) device.history.push_back({.at = one.at, .said = one.reason});
  }

  [[nodiscard]] std::string taint_on(const DeviceKey& key, const DeviceRecord* record) const {
    if (const auto* rule = input_.world.inventory().rule_named_for(key); rule != nullptr && is_our_rule(*rule)) {
      return "rule " + rule->meta.name;
    }
    if (record != nullptr && record->ours.node.stands()) return "node";
    const auto* facts = record == nullptr ? nullptr : record->incident.facts();
    return facts != nullptr && facts->driver_taint && !facts->driver_taint->gone_at ? "driver" : "";
  }

  static std::string words_of(Acknowledged how) {
    switch (how) {
      case Acknowledged::No:
        return {};
      case Acknowledged::Removed:
        return "taint removed";
      case Acknowledged::Changed:
        return "taint changed";
      case Acknowledged::Annotated:
        return "annotated";
    }
    return {};
  }

  [[nodiscard]] std::string job_of(const k8s::Pod& pod) const {
    const auto* record = input_.world.job_of(pod.meta);
    return record == nullptr ? std::string() : record->job.meta.name.str();
  }

  void add_verdicts() {
    std::unordered_set<std::string_view> shown;
    for (const auto& device : status_.devices) shown.insert(device.device);
    std::size_t others = 0;
    for (const auto& verdict : verdicts_) {
      const bool is_shown = !verdict.device.empty() && shown.contains(verdict.device);
      if (!is_shown && ++others > kMostOthers) {
        ++status_.cut.verdicts;
        continue;
      }
      const auto* record = verdict.subject.kind == "Pod" ? input_.world.pod(verdict.subject.uid) : nullptr;
      status_.verdicts.push_back({.kind = verdict.subject.kind,
                                  .ns = verdict.subject.ns,
                                  .name = verdict.subject.name,
                                  .node = record == nullptr ? std::string() : record->pod.node_name.str(),
                                  .job = record == nullptr ? std::string() : job_of(record->pod),
                                  .device = verdict.device,
                                  .policy = verdict.policy,
                                  .mode = std::string(verdict.mode),
                                  .reason = std::string(to_string(verdict.reason)),
                                  .gate = std::string(verdict.gate),
                                  .message = verdict.message,
                                  .since = verdict.since,
                                  .next_at = verdict.next_at});
    }
  }

  const PlanInput& input_;
  const std::span<const Verdict> verdicts_;
  ClusterStatus status_;
};

}  // namespace

ClusterStatus status_of(const PlanInput& input, std::span<const Verdict> verdicts) {
  return Summary(input, verdicts).run();
}

}  // namespace dhc::status
