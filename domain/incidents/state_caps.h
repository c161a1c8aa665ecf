#pragma once
#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "domain/limits/cap_book.h"

namespace dhc {

/// The most of the state that what counts against the caps may take: evictions that would need more wait.
inline constexpr std::size_t kCapsLimit = 320UL * 1024;

/// The section `caps` of the state; empty if there is nothing to be remembered. Over the limit, first the devices that
/// our taints alone keep out of service are left out, because the taints tell of them; then neighbouring counts of
/// evictions become one. Charges and devices from which pods were evicted are always there.
[[nodiscard]] std::string caps_text(const CapBook& book, std::size_t limit = kCapsLimit);

/// Bytes that a charge takes there, generously; what the charges of one driver or resource and one second take once;
/// and all that is always there, with what goes around it.
[[nodiscard]] std::size_t size_of(const EvictionCharge& charge);
[[nodiscard]] std::size_t size_of_group(const EvictionCharge& charge);
[[nodiscard]] std::size_t size_of_caps(const CapBook& book);

/// Reads such a section; `bad` counts the entries that are none of ours.
[[nodiscard]] CapBook read_caps(const nlohmann::ordered_json& json, std::size_t& bad);

}  // namespace dhc
