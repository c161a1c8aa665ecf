#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "domain/policy/config_documents.h"
#include "domain/policy/known_words.h"

namespace dhc {

namespace {

void read_when_no_replacement(const YamlNode& node, EvictRules& rules, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kKeys = {"wait", "then"};
  static constexpr std::array<std::string_view, 2> kThen = {"Evict", "Hold"};
  if (!check_map(node, "spec.evict.whenNoReplacement", kKeys, mistakes)) return;
  if (const YamlNode* given = node.find("wait")) {
    set(rules.no_replacement_wait, read_duration(*given, "spec.evict.whenNoReplacement.wait", Millis(0), mistakes));
  }
  if (const YamlNode* given = node.find("then")) {
    rules.hold_without_replacement =
        read_word(*given, "spec.evict.whenNoReplacement.then", kThen, mistakes).value_or(0) == 1;
  }
}

NoticeRules read_notice(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"deadline", "extendUpTo", "scope"};
  static constexpr std::array<std::string_view, 2> kScopes = {"Pod", "Owner"};
  NoticeRules rules;
  if (!check_map(node, "spec.evict.notice", kKeys, mistakes)) return rules;
  if (const YamlNode* given = node.find("deadline")) {
    set(rules.deadline, read_duration(*given, "spec.evict.notice.deadline", Seconds(1), mistakes));
  }
  if (const YamlNode* given = node.find("extendUpTo")) {
    set(rules.extend_up_to, read_duration(*given, "spec.evict.notice.extendUpTo", Millis(0), mistakes));
  }
  if (const YamlNode* given = node.find("scope")) {
    rules.whole_owner = read_word(*given, "spec.evict.notice.scope", kScopes, mistakes).value_or(0) == 1;
  }
  return rules;
}

EvictRules read_evict(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 10> kKeys = {
      "after",  "cordonWait", "gracePeriodSeconds", "barePods",          "sharedClaims",
      "groups", "untainted",  "whenBlocked",        "whenNoReplacement", "notice"};
  static constexpr std::array<std::string_view, 2> kGroups = {"Each", "Together"};
  static constexpr std::array<std::string_view, 2> kShared = {"Never", "Together"};
  static constexpr std::array<std::string_view, 1> kBlocked = {"Wait"};
  constexpr std::int64_t kDay = 86'400;
  EvictRules rules;
  if (!check_map(node, "spec.evict", kKeys, mistakes)) return rules;
  if (const YamlNode* given = node.find("after")) {
    set(rules.after, read_duration(*given, "spec.evict.after", Millis(0), mistakes));
  }
  if (const YamlNode* given = node.find("cordonWait")) {
    set(rules.cordon_wait, read_duration(*given, "spec.evict.cordonWait", Millis(0), mistakes));
  }
  if (const YamlNode* given = node.find("gracePeriodSeconds");
      given != nullptr && given->kind != YamlNode::Kind::Null) {
    if (given->kind == YamlNode::Kind::Scalar && !given->quoted && given->text == "0") {
      mistakes.add(
          given->place,
          "spec.evict.gracePeriodSeconds is 0: the pod would be gone from the API while its containers still run",
          "write null for the pod's own grace period, or a number from 1");
    } else {
      set(rules.grace_period_seconds, read_number(*given, "spec.evict.gracePeriodSeconds", 1, kDay, mistakes));
    }
  }
  if (const YamlNode* given = node.find("barePods")) {
    set(rules.bare_pods, read_flag(*given, "spec.evict.barePods", mistakes));
  }
  if (const YamlNode* given = node.find("sharedClaims")) {
    rules.shared_claims_together = read_word(*given, "spec.evict.sharedClaims", kShared, mistakes).value_or(0) == 1;
  }
  if (const YamlNode* given = node.find("groups")) {
    rules.groups_together = read_word(*given, "spec.evict.groups", kGroups, mistakes).value_or(0) == 1;
  }
  if (const YamlNode* given = node.find("untainted")) {
    set(rules.untainted, read_flag(*given, "spec.evict.untainted", mistakes));
  }
  if (const YamlNode* given = node.find("whenBlocked")) {
    static_cast<void>(read_word(*given, "spec.evict.whenBlocked", kBlocked, mistakes));
  }
  if (const YamlNode* given = node.find("whenNoReplacement")) read_when_no_replacement(*given, rules, mistakes);
  if (const YamlNode* given = node.find("notice")) rules.notice = read_notice(*given, mistakes);
  return rules;
}

/// Combinations that no reader could mean: each would look as if it did something.
void check_together(const YamlNode& spec, const DevicePolicy& policy, MistakeList& mistakes) {
  const auto map_of = [&spec](std::string_view key) {
    const YamlNode* given = spec.find(key);
    return given != nullptr && given->kind == YamlNode::Kind::Map ? given : nullptr;
  };
  const YamlNode* match = map_of("match");
  const YamlNode* taint = map_of("taint");
  const bool plugins_only =
      match != nullptr && match->find("resources") != nullptr && match->find("drivers") == nullptr;
  const YamlNode* node = taint == nullptr ? nullptr : taint->find("node");
  const bool node_never = node == nullptr || node->text == "Never";
  if (taint != nullptr && plugins_only && node_never && policy.taint->device != TaintRules::Device::Never) {
    mistakes.add(taint->place,
                 "spec.taint taints nothing: match names resources alone, a device-plugin device cannot be tainted by "
                 "itself, and node is Never",
                 "write node: NoSchedule, or remove taint");
  }
  const YamlNode* recover = map_of("recover");
  const bool node_may_get_one = policy.job_retry && policy.job_retry->taints_rejecting_node;
  if (recover != nullptr && spec.find("taint") == nullptr && !node_may_get_one) {
    mistakes.add(recover->place,
                 "spec.recover has no effect: it defines when a taint is removed, and there is no taint",
                 "add taint: {}, or remove recover");
  }
  const auto doubt = policy.mode == Mode::Off ? std::nullopt : doubt_about_taints(policy.match);
  if (doubt && match != nullptr) {
    const YamlNode* taints = match->find("deviceTaints");
    mistakes.warn((taints != nullptr ? taints : match->find("drivers"))->place, "spec.match " + doubt->what,
                  doubt->remedy);
  }
  const YamlNode* health = match == nullptr ? nullptr : match->find("health");
  const bool wants_unknown = std::ranges::find(policy.match.health, k8s::Health::Unknown) != policy.match.health.end();
  if (health != nullptr && wants_unknown && policy.evict && policy.mode == Mode::Enforce) {
    mistakes.warn(
        health->place,
        "spec.match.health names Unknown and the policy evicts: a device is Unknown whenever nobody reports on "
        "it, so each one of a driver that has no health reports (docs/vendors.md) counts as bad",
        "leave Unknown out, or write mode: observe");
  }
  const YamlNode* hand_over = map_of("handOver");
  const YamlNode* incidents = hand_over == nullptr ? nullptr : hand_over->find("incidents");
  const bool none_counts = incidents == nullptr || incidents->text == "0";
  if (hand_over != nullptr && none_counts && policy.hand_over->on_quarantine && spec.find("taint") == nullptr) {
    mistakes.add(hand_over->place,
                 "spec.handOver never happens: without taint no device is quarantined, and incidents is 0",
                 "write incidents: 3, or add taint: {}");
  }
  const YamlNode* enforce_on = map_of("enforceOn");
  if (enforce_on != nullptr && policy.mode != Mode::Enforce) {
    mistakes.warn(enforce_on->place,
                  fmt::format("spec.enforceOn has no effect: spec.mode is {}, so nothing is enforced anywhere",
                              to_string(policy.mode)),
                  "write mode: enforce, which observes where enforceOn does not hold, or remove enforceOn");
  } else if (enforce_on != nullptr && node_may_get_one &&
             (!policy.enforce_on->namespaces.empty() || policy.enforce_on->percent < 100)) {
    mistakes.warn(enforce_on->place,
                  "spec.jobRetry.blackHole.node taints no node: one that rejects pods is no device and in no namespace",
                  "let enforceOn name a nodeSelector alone, or write blackHole.node: Never until it is removed");
  }
}

}  // namespace

DevicePolicy read_policy_spec(const YamlNode& spec, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 10> kKeys = {"mode",  "enforceOn", "priority", "match",   "after",
                                                             "taint", "jobRetry",  "evict",    "recover", "handOver"};
  static constexpr std::array<std::string_view, 3> kModes = {"off", "observe", "enforce"};
  static constexpr std::array<Mode, 3> kModeValues = {Mode::Off, Mode::Observe, Mode::Enforce};
  constexpr std::int64_t kMostPriority = 1'000'000;
  DevicePolicy policy;
  if (!check_map(spec, "spec", kKeys, mistakes)) return policy;
  if (const YamlNode* given = spec.find("mode")) {
    if (const auto which = read_word(*given, "spec.mode", kModes, mistakes)) policy.mode = kModeValues.at(*which);
  }
  if (const YamlNode* given = spec.find("enforceOn")) policy.enforce_on = read_enforce_on(*given, mistakes);
  if (const YamlNode* given = spec.find("priority")) {
    set(policy.priority, read_number(*given, "spec.priority", -kMostPriority, kMostPriority, mistakes));
  }
  if (const YamlNode* given = spec.find("match")) {
    policy.match = read_match(*given, mistakes);
  } else {
    mistakes.add(spec.place, "spec has no match", "say what the policy is for; match: {} means every device");
  }
  if (const YamlNode* given = spec.find("after")) {
    set(policy.after, read_duration(*given, "spec.after", Millis(0), mistakes));
  }
  if (const YamlNode* given = spec.find("taint")) policy.taint = read_taint(*given, mistakes);
  if (const YamlNode* given = spec.find("jobRetry")) policy.job_retry = read_job_retry(*given, mistakes);
  if (const YamlNode* given = spec.find("evict")) policy.evict = read_evict(*given, mistakes);
  if (const YamlNode* given = spec.find("recover")) policy.recover = read_recover(*given, mistakes);
  if (const YamlNode* given = spec.find("handOver")) policy.hand_over = read_hand_over(*given, mistakes);
  check_together(spec, policy, mistakes);
  return policy;
}

namespace {

/// A share and a number, as a Cap and a BrakeShare have; `path` is that of the map.
template <class Share>
void read_share(const YamlNode& node, const std::string& path, Share& share, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 2> kKeys = {"percent", "atLeast"};
  constexpr std::int64_t kMost = 100'000;
  if (!check_map(node, path, kKeys, mistakes)) return;
  if (const YamlNode* given = node.find("percent")) {
    set(share.percent, read_number(*given, path + ".percent", 0, 100, mistakes));
  }
  if (const YamlNode* given = node.find("atLeast")) {
    set(share.at_least, read_number(*given, path + ".atLeast", 0, kMost, mistakes));
  }
}

/// After `atLeast`, which it may not undercut.
void read_brake_count(const YamlNode& node, Limits& limits, MistakeList& mistakes) {
  constexpr std::int64_t kMost = 100'000;
  const auto count = read_number(node, "spec.brake.count", 0, kMost, mistakes);
  if (!count) return;
  if (*count == 0 || *count >= limits.brake_at_least) {
    limits.brake_count = *count;
  } else {
    mistakes.add(node.place,
                 fmt::format("spec.brake.count is {}, but no brake engages for fewer than atLeast, {}", *count,
                             limits.brake_at_least),
                 "write at least that, or 0 to go by the share alone");
  }
}

/// Two devices under one workload are no more than chance.
void read_suspect_after(const YamlNode& node, Limits& limits, MistakeList& mistakes) {
  constexpr std::int64_t kMost = 100;
  const auto count = read_number(node, "spec.caps.suspectAfter", 0, kMost, mistakes);
  if (!count) return;
  if (*count == 0 || *count >= 3) {
    limits.suspect_after = *count;
  } else {
    mistakes.add(node.place, fmt::format("spec.caps.suspectAfter is {}: so few devices may be chance", *count),
                 "write 3 or more, or 0 to suspect no workload");
  }
}

void read_caps(const YamlNode& spec, Limits& limits, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 6> kKeys = {
      "cluster", "node", "perDay", "ownerDevicesPerDay", "nodesHandedOver", "suspectAfter"};
  const YamlNode* caps = spec.find("caps");
  if (caps == nullptr || !check_map(*caps, "spec.caps", kKeys, mistakes)) return;
  const std::array<Cap*, 5> fields = {&limits.cap_cluster, &limits.cap_node, &limits.cap_per_day,
                                      &limits.cap_owner_per_day, &limits.cap_nodes_handed_over};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const YamlNode* given = caps->find(kKeys.at(i));
    if (given != nullptr) read_share(*given, fmt::format("spec.caps.{}", kKeys.at(i)), *fields.at(i), mistakes);
  }
  if (const YamlNode* given = caps->find(kKeys.back())) read_suspect_after(*given, limits, mistakes);
}

void read_pauses(const YamlNode& node, Limits& limits, MistakeList& mistakes) {
  if (!check_list(node, "spec.pauses", mistakes)) return;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    limits.pauses.push_back(read_pause(node.items[i], fmt::format("spec.pauses[{}]", i), mistakes));
  }
}

}  // namespace

Limits read_limits_spec(const YamlNode& spec, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 7> kKeys = {"paused", "pauses", "evictions", "taints",
                                                            "brake",  "caps",   "webhook"};
  // The numbers first.
  static constexpr std::array<std::string_view, 5> kEvictions = {"perMinute", "maxInFlight", "perNode", "perOwner",
                                                                 "countedGrace"};
  static constexpr std::array<std::string_view, 1> kTaints = {"perMinute"};
  static constexpr std::array<std::string_view, 8> kBrake = {"percent", "atLeast", "count",      "byMessage",
                                                             "byOwner", "within",  "trialAfter", "trialRuns"};
  constexpr std::int64_t kMost = 10'000;
  Limits limits;
  if (!check_map(spec, "spec", kKeys, mistakes)) return limits;
  if (const YamlNode* given = spec.find("paused")) set(limits.paused, read_flag(*given, "spec.paused", mistakes));
  if (const YamlNode* given = spec.find("pauses")) read_pauses(*given, limits, mistakes);
  const YamlNode* evictions = spec.find("evictions");
  if (evictions != nullptr && check_map(*evictions, "spec.evictions", kEvictions, mistakes)) {
    const std::array<std::int64_t*, 4> fields = {&limits.evictions_per_minute, &limits.max_in_flight, &limits.per_node,
                                                 &limits.per_owner};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const YamlNode* given = evictions->find(kEvictions.at(i));
      if (given == nullptr) continue;
      set(*fields.at(i), read_number(*given, fmt::format("spec.evictions.{}", kEvictions.at(i)), 1, kMost, mistakes));
    }
    if (const YamlNode* given = evictions->find("countedGrace")) {
      set(limits.counted_grace, read_duration(*given, "spec.evictions.countedGrace", Seconds(30), mistakes));
    }
  }
  const YamlNode* taints = spec.find("taints");
  if (taints != nullptr && check_map(*taints, "spec.taints", kTaints, mistakes)) {
    if (const YamlNode* given = taints->find("perMinute")) {
      set(limits.taints_per_minute, read_number(*given, "spec.taints.perMinute", 1, kMost, mistakes));
    }
  }
  const YamlNode* brake = spec.find("brake");
  if (brake != nullptr && check_map(*brake, "spec.brake", kBrake, mistakes)) {
    if (const YamlNode* given = brake->find("percent")) {
      set(limits.brake_percent, read_number(*given, "spec.brake.percent", 1, 100, mistakes));
    }
    if (const YamlNode* given = brake->find("atLeast")) {
      set(limits.brake_at_least, read_number(*given, "spec.brake.atLeast", 1, kMost, mistakes));
    }
    if (const YamlNode* given = brake->find("count")) read_brake_count(*given, limits, mistakes);
    if (const YamlNode* given = brake->find("byMessage")) {
      read_share(*given, "spec.brake.byMessage", limits.brake_by_message, mistakes);
    }
    if (const YamlNode* given = brake->find("byOwner")) {
      read_share(*given, "spec.brake.byOwner", limits.brake_by_owner, mistakes);
    }
    if (const YamlNode* given = brake->find("within")) {
      set(limits.brake_within, read_duration(*given, "spec.brake.within", Seconds(1), mistakes));
    }
    if (const YamlNode* given = brake->find("trialAfter")) {
      set(limits.brake_trial_after, read_duration(*given, "spec.brake.trialAfter", Seconds(1), mistakes));
    }
    if (const YamlNode* given = brake->find("trialRuns")) {
      set(limits.brake_trial_runs, read_duration(*given, "spec.brake.trialRuns", Seconds(1), mistakes));
    }
  }
  read_caps(spec, limits, mistakes);
  if (const YamlNode* given = spec.find("webhook")) limits.webhook = read_webhook(*given, mistakes);
  return limits;
}

std::optional<std::string> read_name(const YamlNode& document, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"name", "labels", "annotations"};
  const YamlNode* metadata = document.find("metadata");
  if (metadata == nullptr) {
    mistakes.add(document.place, "the document has no metadata", "add metadata: {name: ...}");
    return std::nullopt;
  }
  if (!check_map(*metadata, "metadata", kKeys, mistakes)) return std::nullopt;
  for (const char* key : {"labels", "annotations"}) {
    // Not read by us; only of the right shape, so that the document can become an object unchanged.
    const YamlNode* map = metadata->find(key);
    if (map == nullptr) continue;
    std::vector<std::string_view> any;
    for (std::size_t i = 0; i < map->items.size(); i += 2) any.emplace_back(map->items[i].text);
    if (!check_map(*map, fmt::format("metadata.{}", key), any, mistakes)) continue;
    for (std::size_t i = 0; i + 1 < map->items.size(); i += 2) {
      const YamlNode& value = map->items[i + 1];
      const bool blank = value.kind == YamlNode::Kind::Scalar && value.quoted;  // any string in quotes will do
      if (!blank)
        static_cast<void>(read_text(value, fmt::format("metadata.{}.{}", key, shown(map->items[i].text)), mistakes));
    }
  }
  const YamlNode* name = metadata->find("name");
  if (name == nullptr) {
    mistakes.add(metadata->place, "metadata has no name", "add name: ...");
    return std::nullopt;
  }
  auto text = read_text(*name, "metadata.name", mistakes);
  if (text && !is_dns_subdomain(*text)) {
    mistakes.add(name->place, fmt::format("metadata.name is {}, which is no object's name", shown(*text)),
                 "write lower-case letters, digits, '-' and '.'");
    return std::nullopt;
  }
  return text;
}

}  // namespace dhc
