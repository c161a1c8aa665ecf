#pragma once
#include <cstddef>
#include <string_view>

namespace dhc::k8s {

/// Cuts the members of one JSON object, or the items of one list, out of a text without looking into them, so that one
/// of them being broken leaves the others readable. It knows brackets and strings; what is between them is for the
/// parser.
class JsonFrame {
 public:
  enum class Step {
    Next,    ///< There was one more.
    End,     ///< All were seen, and nothing but white space follows.
    Broken,  ///< The text is no such frame.
  };

  explicit JsonFrame(std::string_view text) : text_(text) {}

  /// The next member of an object: its key as it is written between the quotes, its value as text.
  Step next_member(std::string_view& key, std::string_view& value);

  /// The next item of a list.
  Step next_item(std::string_view& value);

 private:
  Step enter_or_go_on(char open, char close);
  bool take_key(std::string_view& key);
  bool take_value(std::string_view& value);
  bool skip_string();
  bool skip_nested();
  void skip_space();
  [[nodiscard]] bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  std::string_view text_;
  std::size_t at_ = 0;
  bool entered_ = false;
};

/// `text` without JSON's white space at both ends.
[[nodiscard]] std::string_view trim_space(std::string_view text);

}  // namespace dhc::k8s
