#include "cli/plugin/sight.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/reasons.h"
#include "k8s-client/protocol/server_clock.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;

const ReasonInfo* known(std::string_view word) {
  const auto found = std::ranges::find(all_reasons(), word, &ReasonInfo::word);
  return found == all_reasons().end() ? nullptr : &*found;
}

std::string pod_of(const StatusVerdict& verdict) { return verdict.ns + "/" + verdict.name; }

/// The Lease's holder is its pod's name, `_` and a number.
bool is_of(const std::string& holder, const std::string& instance) {
  return holder == instance || holder.starts_with(instance + "_");
}

void note_leader(std::vector<std::string>& notes, const Sight& sight) {
  const auto held_at = sight.written_at ? "what held at " + format_rfc3339(*sight.written_at) : "the last word";
  if (!sight.leader) {
    notes.push_back("warning: the Lease could not be read: whether a controller runs is not known");
  } else if (sight.leader->empty()) {
    notes.push_back(fmt::format("warning: no controller leads: this is {}", held_at));
  } else if (sight.lease_ends && *sight.lease_ends < sight.now) {
    notes.push_back(fmt::format("warning: the controller {} has not renewed its Lease since {}: this is {}",
                                *sight.leader, format_rfc3339(*sight.lease_ends), held_at));
  } else if (!is_of(*sight.leader, sight.written_by)) {
    notes.push_back(fmt::format("warning: this is {}, by {}; {} leads now and has not written yet", held_at,
                                sight.written_by, *sight.leader));
  }
}

void note_cut(std::vector<std::string>& notes, const Sight& sight) {
  const auto& cut = sight.status.cut;
  if (cut.devices > 0 || cut.verdicts > 0) {
    notes.push_back(
        fmt::format("note: {} devices and {} verdicts do not fit into ConfigMap {}/{}; /verdicts of the leader has all",
                    cut.devices, cut.verdicts, sight.ns, kStatusName));
  }
  if (cut.messages) notes.emplace_back("note: the status has no room for messages: read a reason with explain REASON");
  if (cut.message_limit > 0) notes.push_back(fmt::format("note: messages end after {} bytes", cut.message_limit));
  if (cut.histories) notes.emplace_back("note: the status has no room for the devices' past incidents");
}

}  // namespace

Result<Sight> sight_of(const std::string& ns, std::string_view text, std::string_view written_by,
                       std::string_view written_at, WallTime now) {
  auto status = parse_status(text);
  if (!status) return std::unexpected(std::move(status.error()));
  return Sight{.status = *std::move(status),
               .ns = ns,
               .written_by = std::string(written_by),
               .written_at = parse_rfc3339(written_at),
               .now = now};
}

Result<Sight> parse_sight(const std::string& ns, std::string_view body, WallTime now) {
  const auto json = read_json<Json>(body);
  return sight_of(ns, json_string(json, {"data", kStatusEntry}),
                  json_string(json, {"metadata", "annotations", kWrittenByAnnotation}),
                  json_string(json, {"metadata", "annotations", kWrittenAtAnnotation}), now);
}

void note_lease(Sight& sight, const k8s::Lease* lease) {
  sight.leader = lease == nullptr ? std::string() : lease->holder;
  sight.lease_ends.reset();
  if (lease == nullptr) return;
  constexpr std::int64_t kLongestLease = 24L * 3600;
  if (const auto renewed = parse_rfc3339(lease->renew_time))
    sight.lease_ends = *renewed + Seconds(std::clamp<std::int64_t>(lease->duration_seconds, 0, kLongestLease));
}

WallTime time_of(std::optional<std::string_view> date, WallTime ours) {
  if (!date) return ours;
  k8s::ServerClock clock;
  clock.answered(*date, ours, ours);
  return ours + k8s::relevant_ahead(clock.ahead().value_or(Millis::zero()));
}

std::vector<std::string> notes_of(const Sight& sight) {
  std::vector<std::string> notes;
  note_leader(notes, sight);
  if (sight.status.pause) notes.push_back("PAUSED: " + sight.status.pause->why);
  for (const auto& pause : sight.status.pauses) notes.push_back("PAUSED: " + pause.why);
  if (sight.status.mode == "observe")
    notes.emplace_back("note: the controller runs with --mode observe: nothing is evicted or tainted");
  note_cut(notes, sight);
  return notes;
}

Json controller_json(const Sight& sight) {
  const auto& status = sight.status;
  Json json = {{"namespace", sight.ns},
               {"leader", nullptr},
               {"writtenBy", sight.written_by},
               {"writtenAt", nullptr},
               {"version", status.program},
               {"mode", status.mode},
               {"pausedUntil", nullptr},
               {"paused", status.pause.has_value()},
               {"pauses", Json::array()},
               {"devicesUnhealthy", status.devices_unhealthy},
               {"devicesUnknown", status.devices_unknown},
               {"incidentsOpen", status.incidents_open},
               {"quarantined", status.quarantined},
               {"notes", notes_of(sight)}};
  for (const auto& pause : status.pauses) {
    json["pauses"].push_back(
        {{"why", pause.why}, {"until", pause.until ? Json(format_rfc3339(*pause.until)) : Json()}});
  }
  if (sight.leader) json["leader"] = *sight.leader;
  if (sight.written_at) json["writtenAt"] = format_rfc3339(*sight.written_at);
  if (status.pause && status.pause->until) json["pausedUntil"] = format_rfc3339(*status.pause->until);
  return json;
}

DeviceName name_of(const StatusDevice& device) {
  const auto& key = device.device;
  const auto first = key.find('/');
  const auto last = key.rfind('/');
  if (first == std::string::npos || first == last) return {.scope = {}, .name = key};
  // A plugin's device is named NODE/RESOURCE/ID, a driver's DRIVER/POOL/DEVICE. A resource has a slash itself.
  const bool is_plugins = key.starts_with(device.node + "/") && !device.node.empty();
  return {.scope = is_plugins ? key.substr(first + 1, last - first - 1) : key.substr(0, first),
          .name = key.substr(last + 1)};
}

const StatusVerdict* main_verdict(const ClusterStatus& status, const StatusDevice& device, std::string_view pod) {
  const StatusVerdict* found = nullptr;
  for (const auto& verdict : status.verdicts) {
    if (verdict.device != device.device) continue;
    const bool is_pods = verdict.kind == "Pod";
    if (is_pods != !pod.empty() || (is_pods && pod_of(verdict) != pod)) continue;
    // A gate's word comes first, then what is said of it besides; of several the one that names a time.
    const auto weight = [](const StatusVerdict& one) {
      const bool is_step = one.reason == "Evicting" || one.reason == "Evicted" || !one.gate.empty();
      return (is_step ? 2 : 0) + (one.next_at ? 1 : 0);
    };
    if (found == nullptr || weight(verdict) > weight(*found)) found = &verdict;
  }
  return found;
}

std::string next_step(const StatusVerdict& verdict) {
  const auto& word = verdict.reason;
  const auto* info = known(word);
  const auto with = [&](std::string_view step) { return fmt::format("{} ({})", step, word); };
  if (info == nullptr) return with("?");
  switch (info->reason) {
    case Reason::Evicting:
    case Reason::Evicted:
    case Reason::AlreadyTerminating:
    case Reason::StuckTerminating:
      return with("its end");
    case Reason::WouldEvict:
      return with("none: observed");
    case Reason::WouldTaint:
    case Reason::WouldUntaint:
    case Reason::WouldCredit:
    case Reason::WouldHandOver:
      return with("none: observed");
    case Reason::HandingOver:
    case Reason::HandedOver:
      return with("repair of the node");
    case Reason::Tainted:
    case Reason::Untainting:
      return with("untaint");
    case Reason::Tainting:
    case Reason::StagedTaint:
      return with("taint");
    case Reason::Quarantined:
      return with("none until acknowledged");
    case Reason::OnProbation:
      return with("end of probation");
    case Reason::NoPolicy:
      return with("none");
    default:
      break;
  }
  if (info->for_good) return with("none");
  return with(verdict.kind == "Pod" ? "evict" : "wait");
}

}  // namespace dhc::cli
