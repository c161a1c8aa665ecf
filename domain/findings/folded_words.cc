#include "domain/findings/folded_words.h"

#include <algorithm>
#include <cstddef>

#include "base/digit.h"
#include "base/printable.h"
#include "base/uuid.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestFolded = 160;
/// A word of nothing but hexadecimal letters is a name up to here: `dead`, `facade`.
constexpr std::size_t kLongestHexWord = 7;

bool is_letter_or_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Whether it begins with a UUID that is a word of its own.
bool begins_with_uuid_alone(std::string_view text) {
  const auto size = kUuidShape.size();
  return begins_with_uuid(text) && (text.size() == size || !is_letter_or_digit(text[size]));
}

/// Addresses, of which a byte may be letters alone: PCI, with the domain or the function or both (lspci, NVRM,
/// nvidia-smi's long domain, VMD's), and Ethernet.
constexpr std::string_view kAddressShapes[] = {"xxxx:xx:xx.x", "xxxxx:xx:xx.x",  "xxxxxxxx:xx:xx.x",  "xxxx:xx:xx",
                                               "xxxxx:xx:xx",  "xxxxxxxx:xx:xx", "xx:xx:xx:xx:xx:xx", "xx:xx.x"};

/// How long the address is with which it begins, as a word of its own; 0: with none.
std::size_t address_size(std::string_view text) {
  for (const auto shape : kAddressShapes) {
    const bool fits = std::ranges::equal(shape, text.substr(0, shape.size()), [](char wanted, char c) {
      return wanted == 'x' ? is_hex_digit(c) : wanted == c;
    });
    if (fits && (text.size() == shape.size() || !is_letter_or_digit(text[shape.size()]))) return shape.size();
  }
  return 0;
}

/// Each part of an address is a number.
void fold_address(std::string_view address, std::string& folded) {
  for (std::size_t i = 0; i < address.size(); ++i) {
    if (!is_hex_digit(address[i])) {
      folded += address[i];
    } else if (i == 0 || !is_hex_digit(address[i - 1])) {
      folded += '#';
    }
  }
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
    } else if (begins_with_uuid_alone(rest)) {
      folded += '#';
      at += kUuidShape.size();
    } else if (const auto size = address_size(rest); size > 0) {
      fold_address(rest.substr(0, size), folded);
      at += size;
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
