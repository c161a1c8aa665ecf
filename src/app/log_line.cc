#include "app/log_line.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

// Plain ASCII between the quotes in text lines: terminals obey more than one kind of control character.
std::string quoted(std::string_view value) { return Json(value).dump(-1, ' ', true, Json::error_handler_t::replace); }

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\';
         });
}
}  // namespace

std::string text_line(std::span<const LogPair> pairs) {
  std::string line;
  for (const auto& [key, value, is_number] : pairs) {
    if (!line.empty()) line += ' ';
    line += key;
    line += '=';
    line += needs_quotes(value) ? quoted(value) : std::string(value);
  }
  return line;
}

std::string json_line(std::span<const LogPair> pairs) {
  std::string line = "{";
  for (const auto& [key, value, is_number] : pairs) {
    if (line.size() > 1) line += ',';
    line += quoted(key);
    line += ':';
    line += is_number ? std::string(value) : quoted(value);
  }
  return line + "}";
}

}  // namespace dhc
