#pragma once
#include <compare>
#include <optional>
#include <string_view>

namespace dhc::k8s {

/// Which of two resourceVersions of one kind is newer; none if one of them is not a decimal number without a leading
/// zero: such versions can only be equal or not. **Source:** KEP-5504 "comparable resource version": decimal strings of
/// any length; the API servers' own kinds have always had them.
[[nodiscard]] std::optional<std::strong_ordering> version_order(std::string_view a, std::string_view b);

/// Whether `version` is surely older than `known`.
[[nodiscard]] bool is_older_version(std::string_view version, std::string_view known);

}  // namespace dhc::k8s
