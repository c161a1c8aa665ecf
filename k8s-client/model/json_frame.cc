#include "k8s-client/model/json_frame.h"

namespace dhc::k8s {

namespace {
constexpr std::string_view kSpace = " \t\r\n";
}

std::string_view trim_space(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

void JsonFrame::skip_space() {
  while (at_ < text_.size() && kSpace.contains(text_[at_])) ++at_;
}

JsonFrame::Step JsonFrame::enter_or_go_on(char open, char close) {
  skip_space();
  const bool first = !entered_;
  if (first) {
    if (!at(open)) return Step::Broken;
    ++at_;
    entered_ = true;
    skip_space();
  }
  if (at(close)) {
    ++at_;
    skip_space();
    return at_ == text_.size() ? Step::End : Step::Broken;
  }
  if (!first) {
    if (!at(',')) return Step::Broken;
    ++at_;
    skip_space();
  }
  return Step::Next;
}

JsonFrame::Step JsonFrame::next_member(std::string_view& key, std::string_view& value) {
  const auto step = enter_or_go_on('{', '}');
  if (step != Step::Next) return step;
  return take_key(key) && take_value(value) ? Step::Next : Step::Broken;
}

JsonFrame::Step JsonFrame::next_item(std::string_view& value) {
  const auto step = enter_or_go_on('[', ']');
  if (step != Step::Next) return step;
  return take_value(value) ? Step::Next : Step::Broken;
}

bool JsonFrame::take_key(std::string_view& key) {
  const auto start = at_;
  if (!at('"') || !skip_string()) return false;
  key = text_.substr(start + 1, at_ - start - 2);
  skip_space();
  if (!at(':')) return false;
  ++at_;
  skip_space();
  return true;
}

bool JsonFrame::take_value(std::string_view& value) {
  const auto start = at_;
  if (at('"')) {
    if (!skip_string()) return false;
  } else if (at('{') || at('[')) {
    if (!skip_nested()) return false;
  } else {
    const auto end = text_.find_first_of(",]} \t\r\n", at_);
    if (end == std::string_view::npos) return false;
    at_ = end;
  }
  value = text_.substr(start, at_ - start);
  return !value.empty();
}

// From the opening quote to behind the closing one.
bool JsonFrame::skip_string() {
  for (auto quote = text_.find('"', at_ + 1); quote != std::string_view::npos; quote = text_.find('"', quote + 1)) {
    auto before = quote;
    while (text_[before - 1] == '\\') --before;
    if ((quote - before) % 2 == 0) {
      at_ = quote + 1;
      return true;
    }
  }
  return false;
}

// From the opening bracket to behind the one that closes it; whether the kinds of brackets fit is for the parser.
bool JsonFrame::skip_nested() {
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    switch (text_[at_]) {
      case '"':
        if (!skip_string()) return false;
        continue;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        --depth;
        break;
      default:
        break;
    }
    ++at_;
    if (depth == 0) return true;
  }
  return false;
}

}  // namespace dhc::k8s
