#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/yaml_tree.h"
#include "domain/policy/config.h"

namespace dhc {

/// Collects the mistakes of one file, and its warnings where they are wanted, each up to a bound over all files.
class MistakeList {
 public:
  MistakeList(std::string_view file, std::vector<ConfigMistake>& all, std::vector<ConfigMistake>* warnings = nullptr)
      : file_(file), all_(all), warnings_(warnings) {}

  void add(TextPlace place, std::string message, std::string remedy);
  /// Of what is allowed and yet can hardly be meant.
  void warn(TextPlace place, std::string message, std::string remedy);
  [[nodiscard]] bool full() const;

 private:
  std::string_view file_;
  std::vector<ConfigMistake>& all_;
  std::vector<ConfigMistake>* warnings_;
};

/// Takes the value if there was one and it was good.
template <class T, class U>
void set(T& field, std::optional<U> value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, std::optional<U>>) {
    field = std::move(value);
  } else {
    field = *std::move(value);
  }
}

/// Checks that `node` is a map with such keys, each once. False if it is no map; other mistakes are only noted.
/// `path` names the node in messages (`spec.match`).
[[nodiscard]] bool check_map(const YamlNode& node, std::string_view path, std::span<const std::string_view> keys,
                             MistakeList& mistakes);

/// A string; a plain word that YAML readers take for a boolean, number or null is a mistake, because it would change
/// its type on the way through other tools. Nothing if there was a mistake, which is then noted; the same below.
[[nodiscard]] std::optional<std::string> read_text(const YamlNode& node, std::string_view path, MistakeList& mistakes);

/// True or false, in these words.
[[nodiscard]] std::optional<bool> read_flag(const YamlNode& node, std::string_view path, MistakeList& mistakes);

/// A decimal number in [least, most].
[[nodiscard]] std::optional<std::int64_t> read_number(const YamlNode& node, std::string_view path, std::int64_t least,
                                                      std::int64_t most, MistakeList& mistakes);

/// The same with a fraction or without one: `2`, `1.75`.
[[nodiscard]] std::optional<double> read_decimal(const YamlNode& node, std::string_view path, std::int64_t least,
                                                 std::int64_t most, MistakeList& mistakes);

/// A duration in [least, 30 days].
[[nodiscard]] std::optional<Millis> read_duration(const YamlNode& node, std::string_view path, Millis least,
                                                  MistakeList& mistakes);

/// One of `words`, quoted or not (`off` is meant as a word, though YAML 1.1 reads a boolean); gives its index.
[[nodiscard]] std::optional<std::size_t> read_word(const YamlNode& node, std::string_view path,
                                                   std::span<const std::string_view> words, MistakeList& mistakes);

/// A list of strings, each once; `may_be_empty` false: at least one.
[[nodiscard]] std::vector<std::pair<std::string, TextPlace>> read_texts(const YamlNode& node, std::string_view path,
                                                                        bool may_be_empty, MistakeList& mistakes);

/// True if the node is a list; notes the mistake if not.
[[nodiscard]] bool check_list(const YamlNode& node, std::string_view path, MistakeList& mistakes);

/// At most 60 bytes of `text` in quotes, control characters replaced: for messages about what a configuration says.
[[nodiscard]] std::string shown(std::string_view text);

}  // namespace dhc
