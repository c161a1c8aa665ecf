#pragma once
#include <string>
#include <string_view>

#include "simulator/api/field.h"

namespace dhc::sim {

/// A key of a label, annotation or taint: a name of at most 63 characters, perhaps after a domain and a slash.
[[nodiscard]] bool is_qualified_name(std::string_view key);

/// A value of a label or taint: empty, or a name of at most 63 characters; nothing that has a slash or a space.
[[nodiscard]] bool is_label_value(std::string_view value);

/// Adds a cause for each label and annotation that the API does not accept. **Source:** apimachinery's validation.
void check_metadata(const Json& object, Json& causes);

/// Adds causes for a taint of a device or node at `at`: its key and its value.
void check_taint(const Json& taint, const std::string& at, Json& causes);

}  // namespace dhc::sim
