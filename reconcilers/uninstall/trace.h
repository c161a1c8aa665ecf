#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dhc::uninstall {

enum class TraceKind : std::uint8_t {
  Rule,
  NodeTaint,
  NodeCondition,  ///< By which the node was handed over: all of ours.
  Object,         ///< Of another's kind, likewise.
  Condition,      ///< And the notice beside it, if there is one.
  Notice,         ///< Without a condition.
  Annotation,
  StateMap,
  EarlierStateMap,  ///< What 0.1.0 wrote.
  StatusMap,
  Lease,
};

/// One thing that we wrote into the cluster, as it was seen.
struct Trace {
  TraceKind kind = TraceKind::Rule;
  std::string ns;  ///< Of the object that has it; empty if that has none.
  std::string name;
  std::string uid;
  std::string api_version;               ///< Of a rule: where it was listed.
  std::string resource_version;          ///< Of a node: the places of its taints are those of this version.
  std::vector<std::size_t> places;       ///< Of a node: which of its taints are ours, ascending.
  std::vector<std::string> annotations;  ///< Of a Job: which are ours.
  std::vector<std::string> types;        ///< Of a node's conditions that are ours.
  std::string path;                      ///< Of an object of another's kind: where it is,
  std::string object_kind;               ///< and its kind.
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// The trace in one line: `condition device-health.io/DeviceUnhealthy of Pod ns/name`.
[[nodiscard]] std::string to_string(const Trace& trace);

/// The kind in the plural, for counts: `DeviceTaintRules`.
[[nodiscard]] std::string_view plural_of(TraceKind kind);

}  // namespace dhc::uninstall
