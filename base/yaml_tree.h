#pragma once
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace dhc {

/// Where something stands in a text, both counted from 1.
struct TextPlace {
  int line = 1;
  int column = 1;
  friend auto operator<=>(const TextPlace&, const TextPlace&) = default;
};

/// One node of a YAML document as it was written: nothing is guessed about the type of a scalar, and a key that stands
/// twice is there twice.
struct YamlNode {
  enum class Kind : std::uint8_t { Null, Scalar, Sequence, Map };
  Kind kind = Kind::Null;
  bool quoted = false;  ///< A scalar in quotes or a block: always a string.
  bool tagged = false;  ///< An explicit tag stood before it, such as `!!str`.
  TextPlace place;
  std::string text;             ///< Of a scalar.
  std::vector<YamlNode> items;  ///< Sequence: the items. Map: key, value, key, value.

  /// The value of the first such key of a map, or null.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

/// Why a text could not be read as YAML.
struct YamlMistake {
  TextPlace place;
  std::string message;
  std::string remedy;
};

/// Bounds on what is accepted, so that no input costs much time or memory.
struct YamlBounds {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t nodes = 50'000;  ///< Over all documents, copies made for aliases included.
  std::size_t depth = 64;
  /// Brackets, quotes, commas, colons and the like. yaml-cpp keeps every token after an open bracket (250 bytes each)
  /// until the bracket closes: this bounds them before it starts.
  std::size_t marks = 150'000;
  bool aliases = false;  ///< True: an alias is replaced by a copy of what it names. False: it is a mistake.
};

/// Reads all documents of a text (JSON is YAML). Empty documents are Null nodes. Refused: NUL bytes, text that is not
/// UTF-8, and whatever is beyond the bounds.
[[nodiscard]] std::expected<std::vector<YamlNode>, YamlMistake> read_yaml(std::string_view text,
                                                                          const YamlBounds& bounds = {});

/// What a plain scalar means to YAML 1.1 or 1.2 readers; the first that is not String wins.
enum class PlainType : std::uint8_t { String, Null, Bool, Number };
[[nodiscard]] PlainType plain_type(std::string_view text);

}  // namespace dhc
