#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace dhc {

using JsonPath = std::initializer_list<std::string_view>;

// Templates, because nlohmann::json and nlohmann::ordered_json are two types.

/// The value at the end of the path, or null if a step is absent or leads through something that is no object.
template <class Json>
[[nodiscard]] const Json* json_field(const Json& object, JsonPath path) {
  const Json* at = &object;
  for (const auto step : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(step);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

/// The string there; empty if there is none.
template <class Json>
[[nodiscard]] std::string json_string(const Json& object, JsonPath path) {
  const Json* found = json_field(object, path);
  return found != nullptr && found->is_string() ? found->template get<std::string>() : std::string();
}

/// The elements of the array there; none if there is no array. They live as long as `object`.
template <class Json>
[[nodiscard]] std::span<const Json> json_list(const Json& object, JsonPath path) {
  const Json* found = json_field(object, path);
  if (found == nullptr || !found->is_array()) return {};
  return found->template get_ref<const typename Json::array_t&>();
}

/// Whether `true` is there.
template <class Json>
[[nodiscard]] bool json_true(const Json& object, JsonPath path) {
  const Json* found = json_field(object, path);
  return found != nullptr && found->is_boolean() && found->template get<bool>();
}

}  // namespace dhc
