#include "base/yaml_tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace dhc {

namespace {

TextPlace place_of(const YAML::Mark& mark) {
  return mark.is_null() ? TextPlace{} : TextPlace{mark.line + 1, mark.column + 1};
}

/// Thrown out of yaml-cpp's parser when a bound is passed; never leaves this file.
struct Refused {
  YamlMistake mistake;
};

std::size_t count_nodes(const YamlNode& node) {
  std::size_t count = 1;
  for (const YamlNode& item : node.items) count += count_nodes(item);
  return count;
}

/// Builds the tree from the parser's events. Open containers are moved into their parent when they end, so no pointer
/// into a growing vector is kept.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const YamlBounds& bounds) : bounds_(bounds) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    root_ = YamlNode{};
    root_.place = place_of(mark);
    // yaml-cpp 0.7 makes one document after another of `!a , ` and never gets past the comma.
    if (started_ == root_.place) {
      throw Refused{{root_.place, "not YAML: a bracket or comma that does not belong here", "put the text in quotes"}};
    }
    started_ = root_.place;
    anchored_.clear();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(mark, YamlNode::Kind::Null, "?"), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = make(mark, YamlNode::Kind::Scalar, tag);
    node.quoted = tag == "!";
    node.text = value;
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!bounds_.aliases) {
      throw Refused{{place_of(mark), "an alias (*name) is not accepted here", "write the value out"}};
    }
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      throw Refused{{place_of(mark), "an alias (*name) that stands inside what it names", "write the value out"}};
    }
    // Counted before the copy is made: an alias bomb is refused while it is small.
    spend(place_of(mark), count_nodes(found->second));
    add(found->second, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(make(mark, YamlNode::Kind::Sequence, tag), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(make(mark, YamlNode::Kind::Map, tag), anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] YamlNode take() { return std::exchange(root_, {}); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
  };

  void spend(TextPlace place, std::size_t nodes) {
    if (nodes > bounds_.nodes - spent_) {
      throw Refused{{place, "more than " + std::to_string(bounds_.nodes) + " values", "split the file"}};
    }
    spent_ += nodes;
  }
  YamlNode make(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag) {
    YamlNode node;
    node.kind = kind;
    node.place = place_of(mark);
    node.tagged = !tag.empty() && tag != "?" && tag != "!";
    spend(node.place, 1);
    return node;
  }
  void add(YamlNode node, YAML::anchor_t anchor) {
    // The parser places a value that is not there at the next token, which may be lines below its key.
    const bool no_value = node.kind == YamlNode::Kind::Null && !open_.empty() &&
                          open_.back().node.kind == YamlNode::Kind::Map && open_.back().node.items.size() % 2 == 1;
    if (no_value) node.place = open_.back().node.items.back().place;
    if (anchor != 0 && bounds_.aliases) anchored_.insert_or_assign(anchor, node);
    (open_.empty() ? root_ : open_.back().node.items.emplace_back()) = std::move(node);
  }
  void open(YamlNode node, YAML::anchor_t anchor) {
    if (open_.size() >= bounds_.depth) {
      throw Refused{{node.place, "nested deeper than " + std::to_string(bounds_.depth) + " levels", "flatten it"}};
    }
    open_.push_back({std::move(node), anchor});
  }
  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  YamlBounds bounds_;
  std::size_t spent_ = 0;
  YamlNode root_;
  std::optional<TextPlace> started_;  ///< Where the last document began.
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchored_;
};

/// The length of the UTF-8 sequence at the front of `text`, or 0 if it is none. **Source:** RFC 3629.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) >= 0xA0) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

/// The first byte that no text file has.
std::optional<YamlMistake> bad_byte(std::string_view text) {
  TextPlace place;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\0') return YamlMistake{place, "a NUL byte", "save the file as plain UTF-8 text"};
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return YamlMistake{place, "bytes that are not UTF-8", "save the file as plain UTF-8 text"};
    if (text[at] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
    at += length;
  }
  return std::nullopt;
}

YamlMistake explained(const YAML::Exception& error, std::string_view text) {
  const TextPlace place = place_of(error.mark);
  std::size_t start = 0;
  for (int line = 1; line < place.line && start != std::string_view::npos; ++line) {
    start = text.find('\n', start);
    if (start != std::string_view::npos) ++start;
  }
  if (start != std::string_view::npos) {
    const std::string_view line = text.substr(start, text.find('\n', start) - start);
    const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
    if (line.substr(0, indent).contains('\t')) {
      return {{place.line, static_cast<int>(line.find('\t')) + 1},
              "a tab in the indentation",
              "indent with spaces: YAML does not allow tabs there"};
    }
  }
  return {place, "not YAML: " + error.msg, "check the indentation, quotes and brackets before this place"};
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  if (kind != Kind::Map) return nullptr;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].kind == Kind::Scalar && items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

std::expected<std::vector<YamlNode>, YamlMistake> read_yaml(std::string_view text, const YamlBounds& bounds) {
  if (text.size() > bounds.bytes) {
    return std::unexpected(YamlMistake{
        {}, "larger than " + std::to_string(bounds.bytes) + " bytes", "split it, or remove what is not needed"});
  }
  const auto is_mark = [](char c) { return std::string_view("[]{},:?-&*!'\"").contains(c); };
  if (std::ranges::count_if(text, is_mark) > static_cast<std::ptrdiff_t>(bounds.marks)) {
    return std::unexpected(YamlMistake{
        {}, "more than " + std::to_string(bounds.marks) + " brackets, quotes, commas and colons", "split the file"});
  }
  if (auto mistake = bad_byte(text)) return std::unexpected(*std::move(mistake));
  std::vector<YamlNode> documents;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(bounds);
    while (parser.HandleNextDocument(builder)) documents.push_back(builder.take());
  } catch (const Refused& refused) {
    return std::unexpected(refused.mistake);
  } catch (const YAML::Exception& error) {
    return std::unexpected(explained(error, text));
  }
  return documents;
}

PlainType plain_type(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
  constexpr std::array<std::string_view, 22> kBool = {"true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes",
                                                      "YES",  "no",   "No",   "NO",    "on",    "On",    "ON",  "off",
                                                      "Off",  "OFF",  "y",    "Y",     "n",     "N"};
  if (std::ranges::find(kNull, text) != kNull.end()) return PlainType::Null;
  if (std::ranges::find(kBool, text) != kBool.end()) return PlainType::Bool;
  const std::string_view digits = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  if (digits == ".inf" || digits == ".Inf" || digits == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN") {
    return PlainType::Number;
  }
  const auto all_of = [](std::string_view part, std::string_view allowed) {
    return !part.empty() && part.find_first_not_of(allowed) == std::string_view::npos;
  };
  if (digits.starts_with("0x") && all_of(digits.substr(2), "0123456789abcdefABCDEF_")) return PlainType::Number;
  if (digits.starts_with("0o") && all_of(digits.substr(2), "01234567_")) return PlainType::Number;
  if (digits.starts_with("0b") && all_of(digits.substr(2), "01_")) return PlainType::Number;
  if (digits.empty() || !all_of(digits, "0123456789._eE+-:") || digits.find_first_of("0123456789") > 1) {
    return PlainType::String;
  }
  // Decimal, float and YAML 1.1's base 60: digits with at most one dot, one exponent and no stray sign.
  const std::size_t exponent = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, exponent);
  if (mantissa.find_first_of("0123456789") == std::string_view::npos || std::ranges::count(mantissa, '.') > 1 ||
      mantissa.find_first_of("+-") != std::string_view::npos) {
    return PlainType::String;
  }
  if (digits[0] == '_' || digits[0] == ':' || mantissa.ends_with(':') || mantissa.contains("::")) {
    return PlainType::String;
  }
  if (exponent == std::string_view::npos) return PlainType::Number;
  std::string_view power = digits.substr(exponent + 1);
  if (power.starts_with('+') || power.starts_with('-')) power.remove_prefix(1);
  return all_of(power, "0123456789") ? PlainType::Number : PlainType::String;
}

}  // namespace dhc
