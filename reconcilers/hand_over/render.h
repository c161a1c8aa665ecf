#pragma once
#include <array>
#include <expected>
#include <string>

#include "domain/policy/placeholders.h"
#include "domain/policy/policy.h"
#include "reconcilers/hand_over/cases.h"

namespace dhc::hand_over {

/// What stands for each placeholder; empty: nothing is known, and what names it is not made.
using Fillings = std::array<std::string, kPlaceholderWords.size()>;

/// Of a device that is a ground on this node, and the incident that the object is made of. Without the device's own,
/// where the object stands for the node.
[[nodiscard]] Fillings fillings_of(const Ground& ground, const std::string& node, const std::string& incident);

/// The object's name, or why there is none. What a driver has chosen is made fit for a name, with a hash of what it
/// was; so is a name of more than 63 characters, but that of the node itself.
[[nodiscard]] std::expected<std::string, std::string> object_name(const HandOverResource& rules,
                                                                  const Fillings& fillings);

/// The whole object as JSON, or why there is none. Placeholders are filled inside strings that are decoded already, so
/// that no value can become anything else; in labels they are made fit, elsewhere they stand as they are or not at all.
[[nodiscard]] std::expected<std::string, std::string> object_text(const HandOverResource& rules,
                                                                  const Fillings& fillings, const std::string& name);

}  // namespace dhc::hand_over
