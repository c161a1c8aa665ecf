#include "domain/policy/config_text.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/policy/config_duration.h"
#include "domain/policy/pause.h"

namespace dhc {

std::string selector_text(const LabelSelector& selector) {
  std::vector<std::string> parts;
  for (const auto& requirement : selector.requirements) {
    const std::string values = fmt::format("{}", fmt::join(requirement.values, ","));
    switch (requirement.op) {
      case LabelSelector::Operator::In:
        parts.push_back(requirement.values.size() == 1 ? fmt::format("{}={}", requirement.key, values)
                                                       : fmt::format("{} in ({})", requirement.key, values));
        break;
      case LabelSelector::Operator::NotIn:
        parts.push_back(fmt::format("{} notin ({})", requirement.key, values));
        break;
      case LabelSelector::Operator::Exists:
        parts.push_back(requirement.key);
        break;
      case LabelSelector::Operator::DoesNotExist:
        parts.push_back("!" + requirement.key);
        break;
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

namespace {

std::string devices_text(const Match& match) {
  if (match.resources.empty() && match.drivers.empty()) return "every device";
  std::vector<std::string> parts;
  if (!match.resources.empty()) parts.push_back(fmt::format("resources {}", fmt::join(match.resources, ", ")));
  if (!match.drivers.empty()) parts.push_back(fmt::format("drivers {}", fmt::join(match.drivers, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string signal_text(const Match& match) {
  std::vector<std::string> parts;
  std::vector<std::string_view> states;
  for (const k8s::Health health : match.health) {
    states.push_back(to_string(health));
  }
  states.insert(states.end(), match.health_words.begin(), match.health_words.end());
  if (!states.empty()) {
    parts.push_back(fmt::format("{}{}", fmt::join(states, " or "),
                                match.message ? fmt::format(" with a message like /{}/", match.message->text()) : ""));
  }
  for (const auto& condition : match.claim_conditions) {
    parts.push_back(fmt::format("claim condition {}={}", condition.type, condition.status));
  }
  for (const auto& taint : match.device_taints) {
    parts.push_back(fmt::format("driver's taint {}{}:{}", taint.key, taint.value == "*" ? "" : "=" + taint.value,
                                taint.effect.empty() ? "NoSchedule or NoExecute" : taint.effect));
  }
  return fmt::format("{}", fmt::join(parts, ", or "));
}

std::string taint_text(const TaintRules& taint) {
  std::string_view device = "never";
  if (taint.device == TaintRules::Device::NoSchedule) device = "NoSchedule";
  if (taint.device == TaintRules::Device::Staged) device = "None first, then NoSchedule";
  const bool is_of_card = taint.device != TaintRules::Device::Never;
  return fmt::format("  taint: DRA devices {}{}; nodes {}\n", device,
                     !is_of_card        ? ""
                     : taint.partitions ? ", the others of their cards too"
                                        : ", not the others of their cards",
                     taint.node ? fmt::format("NoSchedule from {} bad plugin devices and {}% of the node's",
                                              taint.node_at_least_devices, taint.node_at_least_percent)
                                : "never");
}

std::string recover_text(const RecoverRules& recover) {
  std::string text =
      fmt::format("  recover: healthy for {}, else {} {}; ", format_duration(recover.healthy_for),
                  recover.probation ? "probation after" : "kept for an operator after", format_duration(recover.hold));
  text += fmt::format("penalty halves in {}, quarantine above {}", format_duration(recover.half_life),
                      recover.quarantine_above);
  if (!recover.identity_attribute.empty()) text += fmt::format("; a device is its {}", recover.identity_attribute);
  return text + "\n";
}

using NotCreditable = JobRetryRules::NotCreditable;

std::string no_retries_text(NotCreditable rule) {
  return fmt::format("no retries back; a pod whose loss would end its Job: {}",
                     rule == NotCreditable::Evict ? "evicted all the same" : "held");
}

std::string_view not_creditable_text(NotCreditable rule) {
  switch (rule) {
    case NotCreditable::Evict:
      return "evicted all the same";
    case NotCreditable::HoldIfFatal:
      return "held if the loss would end the Job";
    case NotCreditable::Hold:
      return "held";
  }
  return {};
}

std::string job_retry_text(const JobRetryRules& retry) {
  std::string text = "  Jobs: ";
  if (retry.credit) {
    text += fmt::format("up to {} retries back each, seen {} before the eviction{}; not creditable: {}",
                        retry.max_per_job, format_duration(retry.settle),
                        retry.take_back ? ", taken back if unspent" : "", not_creditable_text(retry.not_creditable));
    if (retry.recreate_once) text += "; a Job that died of hardware is created once more";
  } else {
    text += no_retries_text(retry.not_creditable);
  }
  return text + fmt::format("; {} rejected pods on a node within {} make it a BlackHoleNode{}\n", retry.rejections,
                            format_duration(retry.rejections_within),
                            retry.taints_rejecting_node ? ", which is tainted" : "");
}

std::string evict_text(const EvictRules& evict) {
  std::string text =
      fmt::format("  evict: {} later, {}", format_duration(evict.after),
                  evict.grace_period_seconds ? fmt::format("grace period {}s", *evict.grace_period_seconds)
                                             : std::string("the pod's own grace period"));
  text += evict.cordon_wait > Millis::zero()
              ? fmt::format("; not within {} of its node's cordon", format_duration(evict.cordon_wait))
              : std::string("; a cordon delays nothing");
  text += fmt::format("; pods without a controller: {}; shared claims: {}", evict.bare_pods ? "yes" : "no",
                      evict.shared_claims_together ? "together" : "never");
  text += fmt::format("; the pods of a gang: {}", evict.groups_together ? "together" : "each by itself");
  text += fmt::format("; no place for the replacement: wait {}, then {}", format_duration(evict.no_replacement_wait),
                      evict.hold_without_replacement ? "hold" : "evict");
  if (evict.notice) {
    text += fmt::format("; told {} before{}", format_duration(evict.notice->deadline),
                        evict.notice->whole_owner ? ", with the other pods of its controller" : "");
    if (evict.notice->extend_up_to > Millis::zero())
      text += fmt::format(", up to {} longer if the pod asks", format_duration(evict.notice->extend_up_to));
  }
  if (evict.untainted) text += "; even if the scheduler could give the same device again";
  return text + "\n";
}

std::string hand_over_text(const HandOverRules& rules) {
  std::string when = rules.on_quarantine ? "a quarantined device" : "";
  if (rules.incidents > 0) {
    when += fmt::format("{}{} incidents of a device within {}, the last of which goes on", when.empty() ? "" : ", or ",
                        rules.incidents, format_duration(rules.within));
  }
  std::string text = fmt::format("  hands over: a node with {}", when);
  if (rules.condition)
    text += fmt::format("; condition {}={}", rules.condition->type, rules.condition->is_problem ? "True" : "False");
  if (!rules.resource) return text + "\n";
  return fmt::format("{}; one object a {}, {} when it is over: {}\n", text,
                     rules.resource->per_device ? "device" : "node", rules.resource->keeps ? "kept" : "deleted",
                     rules.resource->text);
}

std::string enforce_on_text(const EnforceOn& on) {
  std::vector<std::string> parts;
  if (!on.namespaces.empty()) parts.push_back(fmt::format("namespaces {}", fmt::join(on.namespaces, ", ")));
  if (!on.nodes.requirements.empty()) parts.push_back("nodes " + selector_text(on.nodes));
  if (on.percent < 100) parts.push_back(fmt::format("{}% of the devices", on.percent));
  return fmt::format("  enforces on: {}\n", parts.empty() ? "all of them" : fmt::format("{}", fmt::join(parts, "; ")));
}

std::string policy_text(const DevicePolicy& policy) {
  std::string text = fmt::format("\n{} (priority {}, {})\n", policy.name, policy.priority, to_string(policy.mode));
  if (policy.enforce_on) text += enforce_on_text(*policy.enforce_on);
  text += fmt::format("  devices: {}\n", devices_text(policy.match));
  for (const auto& [what, selector] :
       {std::pair{"namespaces", &policy.match.namespaces}, std::pair{"pods", &policy.match.pods},
        std::pair{"nodes", &policy.match.nodes}}) {
    if (!selector->requirements.empty()) text += fmt::format("  {}: {}\n", what, selector_text(*selector));
  }
  text += fmt::format("  when: {} for {}\n", signal_text(policy.match), format_duration(policy.after));
  text += policy.taint ? taint_text(*policy.taint) : "  taint: never\n";
  if (policy.taint || (policy.job_retry && policy.job_retry->taints_rejecting_node))
    text += recover_text(policy.recover);
  if (policy.job_retry) {
    text += job_retry_text(*policy.job_retry);
  } else {
    text +=
        policy.evict ? fmt::format("  Jobs: {}\n", no_retries_text(NotCreditable::Hold)) : "  Jobs: no retries back\n";
  }
  text += policy.evict ? evict_text(*policy.evict) : "  evict: never\n";
  if (policy.hand_over) text += hand_over_text(*policy.hand_over);
  return text;
}

/// The brakes that are off by default. One of which only a share is given is off, too, and is told for that.
std::string narrow_brakes_text(const Limits& limits) {
  const auto words = [](const BrakeShare& share, const BrakeShare& usual, std::string_view what) {
    if (share == usual) return std::string();
    if (share.at_least == 0) return fmt::format("; none of more than {}% {}, as atLeast is 0", share.percent, what);
    const auto percent = share.percent == 0 ? std::string() : fmt::format("more than {}% and ", share.percent);
    return fmt::format("; or {}at least {} {}", percent, share.at_least, what);
  };
  const Limits usual;
  return words(limits.brake_by_message, usual.brake_by_message, "with the same words") +
         words(limits.brake_by_owner, usual.brake_by_owner, "of an owner's devices");
}

/// Not the path, which may hold a token.
std::string webhook_text(const WebhookRules& webhook) {
  const auto& url = webhook.url;
  return fmt::format("  webhook: {} port {}{}, signed by the key in {}; at most {} requests a minute; trusts {}{}\n",
                     url.host, url.port, url.tls ? "" : " WITHOUT TLS", webhook.secret_file, webhook.per_minute,
                     webhook.ca_file.empty() ? "the system's roots" : webhook.ca_file,
                     webhook.source.empty() ? "" : fmt::format("; source {}", webhook.source));
}

std::string limits_text(const Limits& limits) {
  std::string more;
  for (const auto& pause : limits.pauses) more += fmt::format("  {}\n", words_of(pause).why);
  if (limits.webhook) more += webhook_text(*limits.webhook);
  return fmt::format(
             "\nlimits{}\n  evictions: {} a minute, {} in flight, {} a node, {} an owner; at most {} of a grace period "
             "holds "
             "a slot\n  taints: {} a minute\n"
             "  brake: more than {}%{} and at least {} devices of one kind within {}{}; a trial after {}, passed after "
             "{}\n"
             "  caps: {}% and at least {} devices out of service in the cluster, {}% and at least {} on a node; {}% "
             "and at "
             "least {} evictions a day; {}% and at least {} of an owner's devices a day; {}% and at least {} nodes "
             "handed "
             "over; {}\n",
             limits.paused ? " (PAUSED: nothing is evicted, credited or newly tainted)" : "",
             limits.evictions_per_minute, limits.max_in_flight, limits.per_node, limits.per_owner,
             format_duration(limits.counted_grace), limits.taints_per_minute, limits.brake_percent,
             limits.brake_count == 0 ? std::string() : fmt::format(" or {}", limits.brake_count), limits.brake_at_least,
             format_duration(limits.brake_within), narrow_brakes_text(limits),
             format_duration(limits.brake_trial_after), format_duration(limits.brake_trial_runs),
             limits.cap_cluster.percent, limits.cap_cluster.at_least, limits.cap_node.percent, limits.cap_node.at_least,
             limits.cap_per_day.percent, limits.cap_per_day.at_least, limits.cap_owner_per_day.percent,
             limits.cap_owner_per_day.at_least, limits.cap_nodes_handed_over.percent,
             limits.cap_nodes_handed_over.at_least,
             limits.suspect_after == 0
                 ? std::string("no owner is suspected of breaking devices")
                 : fmt::format("an owner is suspected from {} devices on", limits.suspect_after)) +
         more;
}

}  // namespace

std::string format_mistake(const ConfigMistake& mistake) {
  return fmt::format("{}:{}:{}: {}; {}", mistake.file, mistake.line, mistake.column, mistake.message, mistake.remedy);
}

std::string format_warning(const ConfigMistake& warning) {
  return fmt::format("{}:{}:{}: warning: {}; {}", warning.file, warning.line, warning.column, warning.message,
                     warning.remedy);
}

std::string format_config(const Config& config) {
  const std::size_t count = config.policies.size();
  std::string text = fmt::format("{} {}, {} limits: valid\n", count, count == 1 ? "policy" : "policies",
                                 config.limits_given ? "own" : "default");
  for (const DevicePolicy& policy : config.policies) text += policy_text(policy);
  return text + limits_text(config.limits);
}

}  // namespace dhc
