#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace dhc {

/// JSON on one line; bytes that are not UTF-8 become U+FFFD, because no driver's message may end a write with an
/// exception.
[[nodiscard]] inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace dhc
