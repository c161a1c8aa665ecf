#include "cli/plugin/explanation.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "cli/plugin/views.h"
#include "cli/table.h"
#include "domain/contract/reasons.h"
#include "reconcilers/eviction/gates.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;

struct KindWord {
  std::string_view word;
  SubjectKind kind;
};
constexpr std::array<KindWord, 10> kKindWords = {{{"pod", SubjectKind::Pod},
                                                  {"pods", SubjectKind::Pod},
                                                  {"po", SubjectKind::Pod},
                                                  {"device", SubjectKind::Device},
                                                  {"devices", SubjectKind::Device},
                                                  {"node", SubjectKind::Node},
                                                  {"nodes", SubjectKind::Node},
                                                  {"no", SubjectKind::Node},
                                                  {"job", SubjectKind::Job},
                                                  {"jobs", SubjectKind::Job}}};

/// Every gate, up to the one that holds; all passed where the eviction is under way.
std::vector<GateLine> gates_of(const StatusVerdict& verdict) {
  const bool goes = verdict.gate.empty() && verdict.reason == "Evicting";
  const auto texts = eviction::Gates::texts();
  const bool is_known = std::ranges::any_of(texts, [&](const auto& gate) { return gate.name == verdict.gate; });
  if (!goes && !is_known) return {};
  std::vector<GateLine> lines;
  auto mark = GateMark::Passed;
  for (const auto& gate : texts) {
    const bool holds = gate.name == verdict.gate;
    if (holds) mark = GateMark::Holds;
    lines.push_back({.name = gate.name, .passes = gate.passes, .mark = mark});
    if (holds) mark = GateMark::NotAsked;
  }
  return lines;
}

bool is_named(const StatusDevice& device, std::string_view name) {
  return device.device == name || name_of(device).name == name;
}

class Finder {
 public:
  Finder(const Sight& sight, const Asked& asked) : status_(sight.status), asked_(asked) {}

  std::expected<Explanation, std::string> run() {
    found_.asked = asked_;
    switch (asked_.kind) {
      case SubjectKind::Device:
        if (auto error = add_device(); !error.empty()) return std::unexpected(std::move(error));
        break;
      case SubjectKind::Node:
        add_node();
        break;
      case SubjectKind::Pod:
        add_owned([this](const StatusVerdict& verdict) { return is_asked(verdict, "Pod"); });
        break;
      case SubjectKind::Job:
        add_owned([this](const StatusVerdict& verdict) {
          const bool is_of_its_pod = verdict.kind == "Pod" && verdict.ns == asked_.ns && verdict.job == asked_.name;
          return is_of_its_pod || is_asked(verdict, "Job");
        });
        break;
    }
    return std::move(found_);
  }

 private:
  /// Two devices may have the same last part.
  std::string add_device() {
    std::vector<const StatusDevice*> named;
    for (const auto& device : status_.devices) {
      if (device.device == asked_.name) named = {&device};
      if (device.device == asked_.name) break;
      if (is_named(device, asked_.name)) named.push_back(&device);
    }
    if (named.size() > 1) {
      std::string all;
      for (const auto* device : named) all += "\n  " + device->device;
      return fmt::format("{} devices are named {}; give one in full:{}", named.size(), asked_.name, all);
    }
    for (const auto* device : named) {
      found_.devices.push_back(device);
      add_verdicts([&](const StatusVerdict& verdict) { return verdict.device == device->device; });
    }
    return {};
  }

  void add_node() {
    std::set<std::string_view> keys;
    for (const auto& device : status_.devices) {
      if (device.node != asked_.name) continue;
      found_.devices.push_back(&device);
      keys.insert(device.device);
    }
    add_verdicts([&](const StatusVerdict& verdict) {
      const bool is_its_brake = verdict.kind == "Brake" && verdict.name.find(asked_.name) != std::string::npos;
      return keys.contains(verdict.device) || verdict.node == asked_.name ||
             (verdict.kind == "Node" && verdict.name == asked_.name) || is_its_brake;
    });
  }

  [[nodiscard]] bool is_asked(const StatusVerdict& verdict, std::string_view kind) const {
    return verdict.kind == kind && verdict.ns == asked_.ns && verdict.name == asked_.name;
  }

  /// What is said of these subjects, and of the devices that they hold.
  template <class IsIts>
  void add_owned(IsIts is_its) {
    std::set<std::string_view> keys;
    std::set<std::string> pods;
    if (asked_.kind == SubjectKind::Pod) pods.insert(asked_.ns + "/" + asked_.name);
    for (const auto& verdict : status_.verdicts) {
      if (!is_its(verdict)) continue;
      keys.insert(verdict.device);
      if (verdict.kind == "Pod") pods.insert(verdict.ns + "/" + verdict.name);
    }
    for (const auto& device : status_.devices) {
      const bool is_held = std::ranges::any_of(device.holders, [&](const auto& pod) { return pods.contains(pod); });
      if (is_held || keys.contains(device.device)) found_.devices.push_back(&device);
    }
    add_verdicts(is_its);
    // What is said of the device itself says why its taint stands.
    add_verdicts([&](const StatusVerdict& verdict) {
      return verdict.kind != "Pod" && verdict.kind != "Job" &&
             std::ranges::any_of(found_.devices, [&](const auto* device) { return device->device == verdict.device; });
    });
  }

  template <class Fits>
  void add_verdicts(Fits fits) {
    for (const auto& verdict : status_.verdicts) {
      if (!fits(verdict)) continue;
      const bool is_step = verdict.kind == "Pod" && (!verdict.gate.empty() || verdict.reason == "Evicting");
      if (is_step) {
        found_.walks.push_back({.verdict = &verdict, .gates = gates_of(verdict)});
      } else {
        found_.verdicts.push_back(&verdict);
      }
    }
  }

  const ClusterStatus& status_;
  const Asked& asked_;
  Explanation found_;
};

std::string at_text(const std::optional<WallTime>& at, WallTime now) {
  return at ? fmt::format("{} ({})", format_rfc3339(*at), due_text(at, now)) : std::string();
}

std::string since_text(WallTime since, WallTime now) {
  return fmt::format("since {} ({})", format_rfc3339(since), age_text(std::chrono::floor<Millis>(now - since)));
}

std::string device_text(const Sight& sight, const StatusDevice& device) {
  auto text = fmt::format("Device {}\n", device.device);
  text += fmt::format("  {}{}{}\n", device.health, device.since ? " " + since_text(*device.since, sight.now) : "",
                      device.said.empty() ? "" : fmt::format(": \"{}\"", device.said));
  if (device.opened_at) {
    text += fmt::format("  incident open {}{}\n", since_text(*device.opened_at, sight.now),
                        device.acknowledged.empty() ? "" : ", acknowledged: " + device.acknowledged);
  } else if (device.closed_at) {
    text += fmt::format("  the last incident ended at {}: {}\n", format_rfc3339(*device.closed_at),
                        or_dash(device.closed_because));
  }
  if (device.probation_until) text += "  on probation until " + at_text(device.probation_until, sight.now) + "\n";
  text += fmt::format("  policy {}; {}; held by {}\n", or_dash(device.policy),
                      device.taint.empty() ? "no taint of ours" : "tainted: " + device.taint,
                      device.holders.empty() ? "nobody" : fmt::format("{}", fmt::join(device.holders, ", ")));
  if (device.incidents == 0) return text;
  const auto* policy = policy_named(sight.status, device.policy);
  text += fmt::format("  {} incident{} remembered, penalty {:.2f}{}{}\n", device.incidents,
                      device.incidents == 1 ? "" : "s", penalty_now(sight, device),
                      policy == nullptr ? "" : fmt::format(", quarantined above {}", policy->quarantine_above),
                      device.quarantined ? ": QUARANTINED until somebody acknowledges" : "");
  for (const auto& one : device.history) {
    text += fmt::format("    {}{}\n", format_rfc3339(one.at), one.said.empty() ? "" : "  " + one.said);
  }
  return text;
}

std::string said_by(const StatusVerdict& verdict) {
  return verdict.message.empty() ? verdict.reason : verdict.reason + ": " + verdict.message;
}

std::string remedy_text(const StatusVerdict& verdict) {
  const auto info = std::ranges::find(all_reasons(), verdict.reason, &ReasonInfo::word);
  return info == all_reasons().end() ? std::string() : fmt::format("  to do: {}\n", info->remedy);
}

std::string verdict_text(const Sight& sight, const StatusVerdict& verdict) {
  const auto subject = verdict.ns.empty() ? fmt::format("{} {}", verdict.kind, verdict.name)
                                          : fmt::format("{} {}/{}", verdict.kind, verdict.ns, verdict.name);
  auto text = fmt::format("{}: {}\n", subject, said_by(verdict));
  if (verdict.next_at) text += "  next step at " + at_text(verdict.next_at, sight.now) + "\n";
  return text + remedy_text(verdict);
}

std::string mark_text(GateMark mark) {
  switch (mark) {
    case GateMark::Passed:
      return "ok";
    case GateMark::Holds:
      return "HOLDS";
    case GateMark::NotAsked:
      return "";
  }
  return {};
}

std::string walk_text(const Sight& sight, const GateWalk& walk) {
  const auto& verdict = *walk.verdict;
  auto text = fmt::format("Eviction of {}/{} on account of {} (policy {}, {})\n", verdict.ns, verdict.name,
                          or_dash(verdict.device), or_dash(verdict.policy), or_dash(verdict.mode));
  const auto held = std::ranges::find(walk.gates, GateMark::Holds, &GateLine::mark);
  if (held != walk.gates.end()) {
    const auto number = held - walk.gates.begin() + 1;
    text += fmt::format("  held by gate {} of {}, {}{}\n", number, walk.gates.size(), held->name,
                        verdict.next_at ? ", until " + at_text(verdict.next_at, sight.now) : "");
  }
  text += fmt::format("  {}\n{}", said_by(verdict), remedy_text(verdict));
  std::vector<Line> lines;
  std::size_t number = 0;
  for (const auto& gate : walk.gates) {
    ++number;
    lines.push_back(
        {"  " + mark_text(gate.mark), fmt::format("{:>2} {}", number, gate.name), std::string(gate.passes)});
  }
  return text + table_of(lines);
}

/// The Job's pods on the devices that follow.
std::string job_text(const Explanation& explanation) {
  std::set<std::string_view> pods;
  const auto add = [&](const StatusVerdict& verdict) {
    if (verdict.kind == "Pod") pods.insert(verdict.name);
  };
  for (const auto& walk : explanation.walks) add(*walk.verdict);
  for (const auto* verdict : explanation.verdicts) add(*verdict);
  const auto job = fmt::format("Job {}/{}", explanation.asked.ns, explanation.asked.name);
  if (pods.empty()) return fmt::format("{}: nothing is decided about a pod of it\n", job);
  return fmt::format("{}: {} of its pods {} concerned: {}\n", job, pods.size(), pods.size() == 1 ? "is" : "are",
                     fmt::join(pods, ", "));
}

std::string_view word_of(SubjectKind kind) {
  switch (kind) {
    case SubjectKind::Pod:
      return "pod";
    case SubjectKind::Device:
      return "device";
    case SubjectKind::Node:
      return "node";
    case SubjectKind::Job:
      return "Job";
  }
  return {};
}

}  // namespace

std::optional<SubjectKind> parse_subject_kind(std::string_view word) {
  const auto found = std::ranges::find(kKindWords, word, &KindWord::word);
  return found == kKindWords.end() ? std::nullopt : std::optional(found->kind);
}

std::expected<Explanation, std::string> explain_subject(const Sight& sight, const Asked& asked) {
  return Finder(sight, asked).run();
}

std::string explanation_text(const Sight& sight, const Explanation& explanation) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "\n") + part; };
  if (explanation.asked.kind == SubjectKind::Job && !explanation.is_empty()) add(job_text(explanation));
  for (const auto* device : explanation.devices) add(device_text(sight, *device));
  for (const auto& walk : explanation.walks) add(walk_text(sight, walk));
  for (const auto* verdict : explanation.verdicts) add(verdict_text(sight, *verdict));
  return text;
}

Json explanation_json(const Sight& sight, const Explanation& explanation) {
  Json json = {{"controller", controller_json(sight)},
               {"asked", to_string(explanation.asked)},
               {"devices", Json::array()},
               {"evictions", Json::array()},
               {"verdicts", Json::array()}};
  for (const auto* device : explanation.devices) json["devices"].push_back(device_object(sight, *device));
  for (const auto& walk : explanation.walks) {
    auto one = verdict_object(*walk.verdict);
    one["gates"] = Json::array();
    for (const auto& gate : walk.gates) {
      const auto mark = gate.mark == GateMark::Passed ? "passed" : gate.mark == GateMark::Holds ? "holds" : "notAsked";
      one["gates"].push_back({{"name", gate.name}, {"passes", gate.passes}, {"state", mark}});
    }
    json["evictions"].push_back(std::move(one));
  }
  for (const auto* verdict : explanation.verdicts) json["verdicts"].push_back(verdict_object(*verdict));
  return json;
}

std::string to_string(const Asked& asked) {
  return asked.ns.empty() ? fmt::format("{} {}", word_of(asked.kind), asked.name)
                          : fmt::format("{} {}/{}", word_of(asked.kind), asked.ns, asked.name);
}

}  // namespace dhc::cli
