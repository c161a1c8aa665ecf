#pragma once
#include <string_view>

namespace dhc {

/// Whether objects and arrays stand in each other deeper than anything that we read or write does: 64 levels. What is
/// built of such a text is copied, compared and written by functions that call themselves, once a level.
[[nodiscard]] bool is_nested_too_deep(std::string_view json);

/// The one way in which text of others becomes JSON. Discarded (`is_discarded`) if it is no JSON, or nested too deep.
template <class Json>
[[nodiscard]] Json read_json(std::string_view text) {
  if (is_nested_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace dhc
