#include "domain/findings/folded_words.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/digit.h"
#include "base/printable.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestFolded = 160;
/// A word of nothing but hexadecimal letters is a name up to here: `dead`, `facade`.
constexpr std::size_t kLongestHexWord = 7;

bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter_or_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// How long the UUID is with which this begins; 0: it begins with none.
std::size_t uuid_length(std::string_view text) {
  static constexpr std::array<std::size_t, 5> kGroups = {8, 4, 4, 4, 12};
  std::size_t at = 0;
  for (const auto length : kGroups) {
    if (at > 0) {
      if (at >= text.size() || text[at] != '-') return 0;
      ++at;
    }
    if (text.size() < at + length || !std::ranges::all_of(text.substr(at, length), is_hex_digit)) return 0;
    at += length;
  }
  return at < text.size() && is_letter_or_digit(text[at]) ? 0 : at;
}

/// One word of letters and digits: a number in whatever base, or the numbers in it.
void fold_word(std::string_view word, std::string& folded) {
  const bool is_address = word.starts_with("0x") || word.starts_with("0X");
  const auto number = is_address ? word.substr(2) : word;
  const bool is_number = std::ranges::all_of(number, is_hex_digit) &&
                         (std::ranges::any_of(word, is_digit) || word.size() > kLongestHexWord);
  if (is_number) return (void)(folded += '#');
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (!is_digit(word[i])) {
      folded += word[i];
    } else if (i == 0 || !is_digit(word[i - 1])) {
      folded += '#';
    }
  }
}

}  // namespace

std::string folded_words(std::string_view said) {
  std::string folded;
  for (std::size_t at = 0; at < said.size() && folded.size() <= kLongestFolded;) {
    const auto rest = said.substr(at);
    if (!is_letter_or_digit(rest.front())) {
      // Words that are wrapped otherwise are the same.
      const bool is_blank = rest.front() == ' ' || rest.front() == '\t' || rest.front() == '\n' || rest.front() == '\r';
      if (!is_blank) {
        folded += rest.front();
      } else if (!folded.empty() && folded.back() != ' ') {
        folded += ' ';
      }
      ++at;
    } else if (const auto length = uuid_length(rest); length > 0) {
      folded += '#';
      at += length;
    } else {
      const auto end = std::ranges::find_if_not(rest, is_letter_or_digit) - rest.begin();
      const auto word = rest.substr(0, static_cast<std::size_t>(end));
      fold_word(word, folded);
      at += word.size();
    }
  }
  while (!folded.empty() && folded.back() == ' ') folded.pop_back();
  return printable_cut(folded, kLongestFolded);
}

}  // namespace dhc
