#pragma once
#include <string>
#include <string_view>

namespace dhc {

/// What a driver says of a device, without what differs from device to device: numbers, addresses and UUIDs become `#`.
/// One line of at most 160 bytes; empty where it says nothing.
[[nodiscard]] std::string folded_words(std::string_view said);

}  // namespace dhc
