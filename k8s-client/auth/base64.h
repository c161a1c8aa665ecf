#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dhc::k8s {

/// Standard base64 with padding. **Source:** RFC 4648 section 4.
[[nodiscard]] std::string base64_encode(std::string_view bytes);

/// The bytes, or nothing if the text is not standard base64. Line breaks are skipped, as Go's decoder does.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace dhc::k8s
