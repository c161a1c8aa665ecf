#include "domain/policy/placeholders.h"

#include <algorithm>

namespace dhc {

std::vector<TemplatePart> parts_of(std::string_view text) {
  std::vector<TemplatePart> parts;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::size_t plain = 0;
  for (std::size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const auto close = text.find('}', open);
    if (close == std::string_view::npos) break;
    const auto word = text.substr(open + 1, close - open - 1);
    if (word.empty() || !std::ranges::all_of(word, is_letter)) continue;
    if (open > plain) parts.push_back({.text = text.substr(plain, open - plain)});
    const auto known = std::ranges::find(kPlaceholderWords, word);
    if (known == kPlaceholderWords.end()) {
      parts.push_back({.text = word, .is_unknown = true});
    } else {
      parts.push_back({.text = word, .placeholder = static_cast<Placeholder>(known - kPlaceholderWords.begin())});
    }
    plain = close + 1;
  }
  if (plain < text.size()) parts.push_back({.text = text.substr(plain)});
  return parts;
}

}  // namespace dhc
