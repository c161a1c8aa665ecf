#include "domain/policy/config_reading.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_word.h"
#include "domain/policy/config_duration.h"

namespace dhc {

namespace {

constexpr std::size_t kMostMistakes = 200;
constexpr std::size_t kMostEntries = 256;  // of one list or map: some checks compare each with each

std::string_view kind_word(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::Null:
      return "nothing";
    case YamlNode::Kind::Sequence:
      return "a list";
    case YamlNode::Kind::Map:
      return "a map";
    case YamlNode::Kind::Scalar:
      break;
  }
  if (node.quoted) return "a string";
  switch (plain_type(node.text)) {
    case PlainType::Bool:
      return "a boolean";
    case PlainType::Number:
      return "a number";
    case PlainType::Null:
      return "nothing";
    case PlainType::String:
      break;
  }
  return "a string";
}

/// Notes that `node` is not what was expected.
void note_type(const YamlNode& node, std::string_view path, std::string_view expected, std::string remedy,
               MistakeList& mistakes) {
  if (node.kind == YamlNode::Kind::Null) {
    mistakes.add(node.place, fmt::format("{} has no value", path),
                 fmt::format("write {}, or remove the key", expected));
  } else {
    mistakes.add(node.place, fmt::format("{} is {}, but should be {}", path, kind_word(node), expected),
                 std::move(remedy));
  }
}

/// A tag could make a reader see another type than the one that stands there.
bool note_tag(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (node.tagged) mistakes.add(node.place, fmt::format("{} has a YAML tag (!...)", path), "remove the tag");
  return node.tagged;
}

void note_unknown_key(const YamlNode& key, std::string_view path, std::span<const std::string_view> keys,
                      MistakeList& mistakes) {
  const std::string_view near = nearest_word(key.text, keys);
  mistakes.add(key.place, fmt::format("{} has no key {}", path, shown(key.text)),
               near.empty() ? fmt::format("remove it; there are: {}", fmt::join(keys, ", "))
                            : fmt::format("did you mean '{}'?", near));
}

bool has_digits_alone(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view without_sign(std::string_view text) { return text.starts_with('-') ? text.substr(1) : text; }

/// A plain scalar that is a number in [least, most]; `why_not` says what is wrong with its characters, or nothing.
template <class Number, class WhyNot>
std::optional<Number> read_value(const YamlNode& node, std::string_view path, const std::string& range, Number least,
                                 Number most, MistakeList& mistakes, WhyNot why_not) {
  if (note_tag(node, path, mistakes)) return std::nullopt;
  const std::string remedy = "write " + range;
  if (node.kind != YamlNode::Kind::Scalar || node.quoted || plain_type(node.text) != PlainType::Number) {
    note_type(node, path, range, node.quoted ? remedy + ", without quotes" : remedy, mistakes);
    return std::nullopt;
  }
  const std::string_view text = node.text;
  const auto refuse = [&](std::string_view why) {
    mistakes.add(node.place, fmt::format("{} is {}: {}", path, shown(text), why), remedy);
    return std::nullopt;
  };
  const auto digits = without_sign(text);
  if (digits.size() > 1 && digits.starts_with('0') &&
      digits.find_first_not_of("0123456789.") == std::string_view::npos && digits[1] != '.') {
    return refuse("a leading zero means octal to some readers and decimal to others");
  }
  if (const std::string_view why = why_not(text); !why.empty()) return refuse(why);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < least || value > most) return refuse("out of range");
  return value;
}

}  // namespace

void MistakeList::add(TextPlace place, std::string message, std::string remedy) {
  if (full()) return;
  all_.push_back({std::string(file_), place.line, place.column, std::move(message), std::move(remedy)});
}

void MistakeList::warn(TextPlace place, std::string message, std::string remedy) {
  if (warnings_ == nullptr || warnings_->size() >= kMostMistakes) return;
  warnings_->push_back({std::string(file_), place.line, place.column, std::move(message), std::move(remedy)});
}

bool MistakeList::full() const { return all_.size() >= kMostMistakes; }

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string result = "'";
  for (const char c : text.substr(0, kMost)) result += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
  // Not in the middle of a UTF-8 sequence.
  while (text.size() > kMost && !result.empty() && (static_cast<unsigned char>(result.back()) & 0x80U) != 0) {
    result.pop_back();
  }
  return result + (text.size() > kMost ? "...'" : "'");
}

bool check_map(const YamlNode& node, std::string_view path, std::span<const std::string_view> keys,
               MistakeList& mistakes) {
  if (note_tag(node, path, mistakes)) return false;
  if (node.kind != YamlNode::Kind::Map) {
    note_type(node, path, "a map of keys and values", "write `key: value` lines below it", mistakes);
    return false;
  }
  if (node.items.size() / 2 > kMostEntries) {
    mistakes.add(node.place, fmt::format("{} has more than {} keys", path, kMostEntries), "shorten it");
    return false;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i + 1 < node.items.size() && !mistakes.full(); i += 2) {
    const YamlNode& key = node.items[i];
    if (key.kind != YamlNode::Kind::Scalar) {
      mistakes.add(key.place, fmt::format("{} has a key that is not a plain string", path),
                   "write the key as a plain word");
    } else if (!seen.insert(key.text).second) {
      mistakes.add(key.place, fmt::format("{}: key {} is a duplicate", path, shown(key.text)), "remove one of them");
    } else if (std::ranges::find(keys, key.text) == keys.end()) {
      note_unknown_key(key, path, keys, mistakes);
    }
  }
  return true;
}

std::optional<std::string> read_text(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (note_tag(node, path, mistakes)) return std::nullopt;
  const bool is_string =
      node.kind == YamlNode::Kind::Scalar && (node.quoted || plain_type(node.text) == PlainType::String);
  if (!is_string) {
    const std::string remedy = node.kind == YamlNode::Kind::Scalar
                                   ? fmt::format("put it in quotes: \"{}\"", node.text.substr(0, 60))
                                   : std::string("write one value in quotes");
    note_type(node, path, "a string", remedy, mistakes);
    return std::nullopt;
  }
  if (node.text.empty()) {
    mistakes.add(node.place, fmt::format("{} is empty", path), "write a value, or remove the key");
    return std::nullopt;
  }
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::ranges::any_of(node.text, control)) {
    mistakes.add(node.place, fmt::format("{} has a line break or control character in it", path),
                 "write it on one line");
    return std::nullopt;
  }
  return node.text;
}

std::optional<bool> read_flag(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (note_tag(node, path, mistakes)) return std::nullopt;
  if (node.kind == YamlNode::Kind::Scalar && !node.quoted) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
    if (plain_type(node.text) == PlainType::Bool) {
      mistakes.add(node.place,
                   fmt::format("{} is {}, which not every reader takes for a boolean", path, shown(node.text)),
                   "write true or false");
      return std::nullopt;
    }
  }
  note_type(node, path, "true or false", "write true or false, without quotes", mistakes);
  return std::nullopt;
}

std::optional<std::int64_t> read_number(const YamlNode& node, std::string_view path, std::int64_t least,
                                        std::int64_t most, MistakeList& mistakes) {
  const auto range = fmt::format("a whole number from {} to {}", least, most);
  return read_value<std::int64_t>(node, path, range, least, most, mistakes, [](std::string_view text) {
    return has_digits_alone(without_sign(text))
               ? ""
               : "only decimal digits are accepted, no hexadecimal, fraction or exponent";
  });
}

std::optional<double> read_decimal(const YamlNode& node, std::string_view path, std::int64_t least, std::int64_t most,
                                   MistakeList& mistakes) {
  const auto range = fmt::format("a number from {} to {}", least, most);
  const auto low = static_cast<double>(least);
  const auto high = static_cast<double>(most);
  return read_value<double>(node, path, range, low, high, mistakes, [](std::string_view text) {
    const auto point = std::min(text.find('.'), text.size());
    const bool good = has_digits_alone(without_sign(text.substr(0, point))) &&
                      (point == text.size() || has_digits_alone(text.substr(point + 1)));
    return good ? "" : "only decimal digits and one point between them are accepted, no hexadecimal or exponent";
  });
}

std::optional<Millis> read_duration(const YamlNode& node, std::string_view path, Millis least, MistakeList& mistakes) {
  const std::string remedy = "write a duration such as 90s, 5m or 1h30m";
  if (note_tag(node, path, mistakes)) return std::nullopt;
  if (node.kind != YamlNode::Kind::Scalar) {
    note_type(node, path, "a duration", remedy, mistakes);
    return std::nullopt;
  }
  const auto duration = parse_duration(node.text);
  if (!duration) {
    mistakes.add(node.place, fmt::format("{} is {}: {}", path, shown(node.text), duration.error()), remedy);
    return std::nullopt;
  }
  if (*duration < least) {
    mistakes.add(node.place, fmt::format("{} is {}: shorter than {}", path, shown(node.text), format_duration(least)),
                 remedy);
    return std::nullopt;
  }
  return *duration;
}

std::optional<std::size_t> read_word(const YamlNode& node, std::string_view path,
                                     std::span<const std::string_view> words, MistakeList& mistakes) {
  if (note_tag(node, path, mistakes)) return std::nullopt;
  const std::string all = fmt::format("{}", fmt::join(words, ", "));
  if (node.kind != YamlNode::Kind::Scalar) {
    note_type(node, path, words.size() == 1 ? all : "one of " + all, "write one word", mistakes);
    return std::nullopt;
  }
  const auto found = std::ranges::find(words, node.text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::string_view near = nearest_word(node.text, words);
  mistakes.add(
      node.place,
      fmt::format("{} is {}, but should be {}{}", path, shown(node.text), words.size() == 1 ? "" : "one of ", all),
      near.empty() ? std::string("write one of these words") : fmt::format("did you mean '{}'?", near));
  return std::nullopt;
}

bool check_list(const YamlNode& node, std::string_view path, MistakeList& mistakes) {
  if (note_tag(node, path, mistakes)) return false;
  if (node.kind == YamlNode::Kind::Sequence && node.items.size() > kMostEntries) {
    mistakes.add(node.place, fmt::format("{} has more than {} items", path, kMostEntries),
                 "use * in names, or split the policy");
    return false;
  }
  if (node.kind == YamlNode::Kind::Sequence) return true;
  note_type(node, path, "a list", "write [a, b] or one `- a` a line", mistakes);
  return false;
}

std::vector<std::pair<std::string, TextPlace>> read_texts(const YamlNode& node, std::string_view path,
                                                          bool may_be_empty, MistakeList& mistakes) {
  std::vector<std::pair<std::string, TextPlace>> texts;
  if (!check_list(node, path, mistakes)) return texts;
  if (node.items.empty() && !may_be_empty) {
    mistakes.add(node.place, fmt::format("{} is an empty list", path), "name at least one, or remove the key");
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    auto text = read_text(node.items[i], fmt::format("{}[{}]", path, i), mistakes);
    if (!text) continue;
    if (!seen.insert(*text).second) {
      mistakes.add(node.items[i].place, fmt::format("{}: {} is a duplicate", path, shown(*text)), "remove one of them");
      continue;
    }
    texts.emplace_back(*std::move(text), node.items[i].place);
  }
  return texts;
}

}  // namespace dhc
