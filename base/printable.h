#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace dhc {

/// `text` as one harmless line of at most `limit` bytes: cut between two characters, each control character (C0, DEL,
/// C1) a space, each byte that is not UTF-8 a `?`. For what others wrote and we pass on.
[[nodiscard]] std::string printable_cut(std::string_view text, std::size_t limit);

}  // namespace dhc
