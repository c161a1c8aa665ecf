#pragma once
#include <string>
#include <string_view>

namespace dhc::k8s {

/// `text` with A-Z made a-z and all other bytes left alone, whatever the locale.
[[nodiscard]] inline std::string to_lower_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace dhc::k8s
