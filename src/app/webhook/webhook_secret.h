#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace dhc {

/// A key that is shorter can be guessed.
inline constexpr std::size_t kLeastSecret = 16;

/// The key in this file, without newlines at its end. Invalid, with what to do and nothing of its content: it cannot be
/// read, or is shorter than `kLeastSecret`.
[[nodiscard]] Result<std::string> read_webhook_secret(const std::string& path);

/// `sha256=` and, in hexadecimal, the HMAC-SHA-256 of the timestamp, a full stop and the body: whoever records a
/// request cannot send it again later.
[[nodiscard]] std::string webhook_signature(std::string_view secret, std::string_view timestamp, std::string_view body);

}  // namespace dhc
