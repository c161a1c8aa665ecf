#pragma once
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/plugin/sight.h"

namespace dhc::cli {

/// What `explain` can be asked about, beside reasons.
enum class SubjectKind : std::uint8_t { Pod, Device, Node, Job };

/// By kubectl's words for it (`pod`, `po`, `pods`); none: no such kind.
[[nodiscard]] std::optional<SubjectKind> parse_subject_kind(std::string_view word);

struct Asked {
  SubjectKind kind = SubjectKind::Pod;
  std::string ns;  ///< Of a pod or Job.
  std::string name;
};

/// Where one gate of an eviction stands for a pod.
enum class GateMark : std::uint8_t { Passed, Holds, NotAsked };
struct GateLine {
  std::string_view name;
  std::string_view passes;
  GateMark mark = GateMark::NotAsked;
};

/// A pod's way through the gates on account of one device.
struct GateWalk {
  const StatusVerdict* verdict = nullptr;
  std::vector<GateLine> gates;  ///< In their order; empty where the verdict is of no gate that this program knows.
};

/// All that is known of what was asked.
struct Explanation {
  Asked asked;
  std::vector<const StatusDevice*> devices;
  std::vector<GateWalk> walks;                 ///< Of pods, one for each device.
  std::vector<const StatusVerdict*> verdicts;  ///< All others.
  [[nodiscard]] bool is_empty() const { return devices.empty() && walks.empty() && verdicts.empty(); }
};

/// Why, why not, which gate holds and until when. A device may be named by its last part where only one has it; an
/// error names those that do. Empty: nothing is known of it, which of a pod means that it holds no device that is bad.
[[nodiscard]] std::expected<Explanation, std::string> explain_subject(const Sight& sight, const Asked& asked);

[[nodiscard]] std::string explanation_text(const Sight& sight, const Explanation& explanation);
[[nodiscard]] nlohmann::ordered_json explanation_json(const Sight& sight, const Explanation& explanation);

/// `pod ml/train-0`.
[[nodiscard]] std::string to_string(const Asked& asked);

}  // namespace dhc::cli
