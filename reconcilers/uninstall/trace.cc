#include "reconcilers/uninstall/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "domain/contract/names.h"

namespace dhc::uninstall {

namespace {
// Longer than any name; annotations are others' text.
constexpr std::size_t kLongest = 400;
}  // namespace

std::string to_string(const Trace& trace) {
  std::string text;
  switch (trace.kind) {
    case TraceKind::Rule:
      text = fmt::format("DeviceTaintRule {}", trace.name);
      break;
    case TraceKind::NodeTaint:
      text = fmt::format("taint {} of Node {}", kTaintKey, trace.name);
      break;
    case TraceKind::NodeCondition:
      text = fmt::format("condition {} of Node {}", fmt::join(trace.types, ", "), trace.name);
      break;
    case TraceKind::Object:
      text = fmt::format("{} {}{}{}", trace.object_kind, trace.ns, trace.ns.empty() ? "" : "/", trace.name);
      break;
    case TraceKind::Condition:
      text = fmt::format("condition {} of Pod {}/{}", kConditionType, trace.ns, trace.name);
      break;
    case TraceKind::Notice:
      text = fmt::format("annotation {} of Pod {}/{}", kNoticeAnnotation, trace.ns, trace.name);
      break;
    case TraceKind::Annotation:
      text = fmt::format("annotation {} of Job {}/{}", fmt::join(trace.annotations, ", "), trace.ns, trace.name);
      break;
    case TraceKind::StateMap:
    case TraceKind::StatusMap:
    case TraceKind::EarlierStateMap:
      text = fmt::format("ConfigMap {}/{}", trace.ns, trace.name);
      break;
    case TraceKind::Lease:
      text = fmt::format("Lease {}/{}", trace.ns, trace.name);
      break;
  }
  return printable_cut(text, kLongest);
}

std::string_view plural_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::Rule:
      return "DeviceTaintRules";
    case TraceKind::NodeTaint:
      return "node taints";
    case TraceKind::NodeCondition:
      return "node conditions";
    case TraceKind::Object:
      return "objects of hand-over";
    case TraceKind::Condition:
      return "pod conditions";
    case TraceKind::Notice:
      return "pod annotations";
    case TraceKind::Annotation:
      return "Job annotations";
    case TraceKind::StateMap:
    case TraceKind::StatusMap:
    case TraceKind::EarlierStateMap:
      return "ConfigMaps";
    case TraceKind::Lease:
      return "Leases";
  }
  return {};
}

}  // namespace dhc::uninstall
