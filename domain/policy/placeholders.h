#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace dhc {

/// What a template of `handOver.resource` may leave open: `{node}` in one of its strings.
enum class Placeholder : std::uint8_t { Node, Policy, Incident, Device, Driver, Resource, Pool, Identity };
inline constexpr std::array<std::string_view, 8> kPlaceholderWords = {"node",   "policy",   "incident", "device",
                                                                      "driver", "resource", "pool",     "identity"};

[[nodiscard]] constexpr std::string_view word_of(Placeholder one) {
  return kPlaceholderWords.at(static_cast<std::size_t>(one));
}

/// Whether it is another one for each device of a node.
[[nodiscard]] constexpr bool is_of_device(Placeholder one) { return one >= Placeholder::Device; }

/// A part of a template's string: text as it stands, a placeholder, or a word in braces that is none.
struct TemplatePart {
  std::string_view text;  ///< Without the braces.
  std::optional<Placeholder> placeholder = {};
  bool is_unknown = false;
};

/// The parts of the string, in order. Braces around anything but letters are text. Views into `text`.
[[nodiscard]] std::vector<TemplatePart> parts_of(std::string_view text);

}  // namespace dhc
