#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/model/resource_slice.h"

namespace dhc {

/// What an attribute says, whatever its domain: `gpu.nvidia.com/parentUUID` is `parentuuid`.
[[nodiscard]] std::string attribute_word(std::string_view attribute);

/// The physical card of each device of a node's pool, by the device's name: devices with one card have one name for it.
/// **Source:** NVIDIA's and AMD's DRA drivers: a partition carries its card's `pciBusID`, or the card's UUID as
/// `parentUUID`; KEP-4815: what shares a card draws on one set of counters, whose name is unique in its slice, and only
/// from 1.35 on in the pool. Other attributes prove nothing: a TPU's `uuid` is its node's. A device of which nothing is
/// said is a card of its own. Points into the slices.
[[nodiscard]] std::map<std::string_view, std::string> physical_cards(
    const std::vector<const k8s::ResourceSlice*>& slices);

}  // namespace dhc
