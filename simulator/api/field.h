#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/json_field.h"

namespace dhc::sim {

using Json = nlohmann::json;
using Path = JsonPath;

/// The value at `path`, or nullptr if any step is absent or not an object.
[[nodiscard]] const Json* field(const Json& object, Path path);

/// The string at `path`; empty if absent or not a string.
[[nodiscard]] std::string text(const Json& object, Path path);

/// The number at `path`, also from a quantity written as a string (`"3"`); `otherwise` if absent.
[[nodiscard]] std::int64_t number(const Json& object, Path path, std::int64_t otherwise = 0);

/// The elements of the array at `path`; an empty array if absent.
[[nodiscard]] std::span<const Json> list(const Json& object, Path path);

/// `metadata.namespace`, `metadata.name`, `metadata.uid`.
[[nodiscard]] std::string ns_of(const Json& object);
[[nodiscard]] std::string name_of(const Json& object);
[[nodiscard]] std::string uid_of(const Json& object);

/// True once deletion was asked for.
[[nodiscard]] bool is_deleting(const Json& object);

/// The status of the condition `type`, or empty.
[[nodiscard]] std::string condition_status(const Json& object, std::string_view type);

/// Sets a condition in `status.conditions` by its type; the transition time changes only with the status.
void set_condition(Json& object, std::string_view type, std::string_view status, std::string_view reason,
                   std::string_view message, const std::string& time);

/// True if the pod's phase is Succeeded or Failed.
[[nodiscard]] bool is_terminal(const Json& pod);

/// The owner reference with `controller: true`, or nullptr.
[[nodiscard]] const Json* controller_of(const Json& object);

}  // namespace dhc::sim
