#include "base/printable.h"

#include <cstdint>

namespace dhc {

namespace {
/// The length of the UTF-8 character at the start of `text`, 0 if there is none. **Source:** RFC 3629.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2U
                             : first >= 0xE0 && first <= 0xEF ? 3U
                             : first >= 0xF0 && first <= 0xF4 ? 4U
                                                              : 0U;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const auto second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<std::uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  return first == 0xC2 && static_cast<std::uint8_t>(character[1]) < 0xA0;
}
}  // namespace

std::string printable_cut(std::string_view text, std::size_t limit) {
  std::string line;
  while (!text.empty()) {
    const auto length = character_length(text);
    const auto character = text.substr(0, length == 0 ? 1 : length);
    const auto shown = length == 0 ? std::string_view("?") : is_control(character) ? std::string_view(" ") : character;
    if (line.size() + shown.size() > limit) break;
    line += shown;
    text.remove_prefix(character.size());
  }
  return line;
}

}  // namespace dhc
