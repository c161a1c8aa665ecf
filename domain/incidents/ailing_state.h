#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/ailing_pod.h"

namespace dhc {

/// The name of the section of the state that tells which Jobs' pods are on bad devices; versions that do not know it
/// keep it as it is.
inline constexpr std::string_view kAilingSection = "ailingPods";
/// The most that it takes: about 200 pods.
inline constexpr std::size_t kAilingStateLimit = 64UL * 1024;

/// The pods as JSON of at most `limit` bytes: those seen last come first, the others go. Empty: there are none.
[[nodiscard]] std::string ailing_state_text(const std::vector<AilingPod>& pods, std::size_t limit = kAilingStateLimit);

/// Reads what `ailing_state_text` made; what it did not make is left out.
[[nodiscard]] std::vector<AilingPod> parse_ailing_state(std::string_view text);

}  // namespace dhc
