#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace dhc::test {

/// A varint.
[[nodiscard]] inline std::string varint(std::uint64_t number) {
  std::string out;
  for (; number >= 0x80U; number >>= 7U) out += static_cast<char>((number & 0x7FU) | 0x80U);
  return out + static_cast<char>(number);
}

/// One field that holds text or a message.
[[nodiscard]] inline std::string field(std::uint32_t tag, std::string_view bytes) {
  return (varint((std::uint64_t{tag} << 3U) | 2U) + varint(bytes.size())).append(bytes);
}

/// One field that holds a whole number.
[[nodiscard]] inline std::string number(std::uint32_t tag, std::uint64_t value) {
  return varint(std::uint64_t{tag} << 3U) + varint(value);
}

/// A message in Kubernetes' envelope.
[[nodiscard]] inline std::string enveloped(std::string_view version, std::string_view kind, std::string_view message) {
  return std::string("k8s\0", 4) + field(1, field(1, version) + field(2, kind)) + field(2, message);
}

}  // namespace dhc::test
