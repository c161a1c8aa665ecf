#include "cli/demo_lines.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dhc::cli {

namespace {
std::string place(const std::vector<DemoDevice>& devices) {
  std::vector<std::string_view> names;
  for (const auto& device : devices) names.push_back(device.device);
  return devices.empty() ? std::string() : fmt::format("{} on {}", fmt::join(names, ", "), devices.front().node);
}

/// `default/web-1` as `web-1`: the demo has one namespace.
std::string short_name(const std::string& holder) { return holder.substr(holder.find('/') + 1); }

std::string who(const Verdict& verdict) {
  const auto& subject = verdict.subject;
  if (subject.kind == "Pod") return subject.name;
  return verdict.device.empty() ? fmt::format("{} {}", subject.kind, subject.name) : verdict.device;
}

/// Told by the write, or by the operator, that makes it so.
bool is_told_by_cause(Reason reason) {
  switch (reason) {
    case Reason::Acknowledged:
    case Reason::Evicted:
    case Reason::Tainted:
    case Reason::Untainted:
    case Reason::Credited:
      return true;
    default:
      return false;
  }
}

class Writes {
 public:
  Writes(std::vector<DemoLine>& lines, WallTime at) : lines_(lines), at_(at) {}

  void operator()(const taint::ApplyRule& rule) const {
    if (!rule.uid.empty()) return;
    say(DemoTone::Act, "TAINTED",
        fmt::format("{} on {}: {}, no new pod gets it", rule.device_name, rule.node, rule.effect));
  }
  void operator()(const taint::DeleteRule& rule) const {
    say(DemoTone::Good, "UNTAINTED", fmt::format("{} on {}: new pods may get it", rule.key.device, rule.key.place));
  }
  void operator()(const taint::PatchNodeTaint& patch) const {
    say(DemoTone::Act, patch.add ? "TAINTED" : "UNTAINTED", "node " + patch.node);
  }
  void operator()(const hand_over::MakeObject& make) const { say(DemoTone::Act, "HANDED OVER", make.words()); }
  void operator()(const hand_over::RemoveObject& removal) const { say(DemoTone::Act, "HANDED OVER", removal.words()); }
  void operator()(const hand_over::ApplyNodeConditions& apply) const {
    say(DemoTone::Act, "HANDED OVER", apply.words());
  }
  void operator()(const job_retry::PatchJob& patch) const {
    if (patch.limit == patch.limit_before) return;
    say(DemoTone::Act, "CREDITED",
        fmt::format("Job {}: backoffLimit {} -> {} for the pod it loses", patch.name, patch.limit_before, patch.limit));
  }
  void operator()(const job_retry::RecreateJob& made) const { say(DemoTone::Act, "RECREATED", "Job " + made.name); }
  void operator()(const eviction::EvictPod& pod) const { say(DemoTone::Act, "EVICTED", "pod " + pod.name); }
  /// Conditions, Events, the state and reads are not told.
  template <class Other>
  void operator()(const Other&) const {}

 private:
  void say(DemoTone tone, std::string_view word, std::string text) const {
    lines_.push_back({.at = at_, .tone = tone, .word = word, .text = std::move(text)});
  }
  std::vector<DemoLine>& lines_;
  WallTime at_;
};

DemoLine line_of(const Verdict& verdict, WallTime at) {
  const auto line = [&](std::string_view word, std::string text) {
    return DemoLine{.at = at, .tone = DemoTone::Hold, .word = word, .text = std::move(text), .is_wrapped = true};
  };
  const auto text = fmt::format("{}: {}", who(verdict), verdict.message);
  if (verdict.reason == Reason::BrakeEngaged) return line("BRAKE", verdict.message);
  const bool is_advice = verdict.reason == Reason::NodeSuspected || verdict.reason == Reason::DriverSuspected;
  if (is_advice || (verdict.reason == Reason::WorkloadSuspected && verdict.subject.kind != "Pod"))
    return line("SUSPECTED", verdict.message);
  if (verdict.reason == Reason::Quarantined) return line("QUARANTINE", text);
  if (verdict.reason == Reason::OnProbation) return line("PROBATION", text);
  return line("HOLDS", fmt::format("{}: {}: {}", who(verdict), to_string(verdict.reason), verdict.message));
}
}  // namespace

std::vector<DemoLine> lines_of(const DemoEvent& event, WallTime at) {
  switch (event.what) {
    case DemoEvent::What::Told:
      return {{.at = at, .tone = DemoTone::Operator, .word = "OPERATOR", .text = event.said, .is_wrapped = true}};
    case DemoEvent::What::Repaired:
      return {{.at = at, .tone = DemoTone::Good, .word = "HEALTHY", .text = place(event.devices)}};
    case DemoEvent::What::Broke:
      break;
  }
  auto text = place(event.devices);
  if (event.holders.size() == 1) text += " under " + short_name(event.holders.front());
  if (event.holders.size() > 1) text += fmt::format(" under {} pods", event.holders.size());
  if (!event.said.empty()) text += ": " + event.said;
  return {{.at = at, .tone = DemoTone::Bad, .word = "BROKE", .text = std::move(text)}};
}

std::vector<DemoLine> lines_of(const DemoMoment& moment, WallTime at) {
  std::vector<DemoLine> lines;
  for (const auto& verdict : moment.ended) {
    if (verdict.reason != Reason::BrakeEngaged) continue;
    lines.push_back({.at = at,
                     .tone = DemoTone::Good,
                     .word = "RELEASED",
                     .text = fmt::format("the brake of {} on {}", verdict.device, verdict.subject.name)});
  }
  for (const auto& outcome : moment.outcomes) {
    if (outcome.status) std::visit(Writes(lines, at), outcome.action);
  }
  for (const auto& verdict : moment.begun) {
    const auto& info = info_of(verdict.reason);
    if (info.event == EventType::None || is_told_by_cause(verdict.reason)) continue;
    lines.push_back(line_of(verdict, at));
  }
  return lines;
}

DemoLine line_of(const DemoReplaced& replaced, WallTime at) {
  return {.at = at,
          .tone = DemoTone::Good,
          .word = "RUNNING",
          .text = fmt::format("pod {} on {} of {}", replaced.pod, replaced.on.device, replaced.on.node)};
}

}  // namespace dhc::cli
