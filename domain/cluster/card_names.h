#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "domain/cluster/inventory.h"

namespace dhc {

/// The devices of a pool at one time.
struct Listing {
  const std::map<std::string, PublishedDevice>& devices;
  const std::set<std::string, std::less<>>& shared;  ///< As `shared_identities` says.
};

/// Values of well-known attributes that several cards carry. **Source:** Google's TPU driver makes `uuid` of the node's
/// name, for each chip.
[[nodiscard]] std::set<std::string, std::less<>> shared_identities(
    const std::map<std::string, PublishedDevice>& devices);

/// Whether the attribute names the card of a partition. **Source:** NVIDIA's DRA driver: `parentUUID` of a MIG device,
/// whose own `uuid` is another each time that it is made.
[[nodiscard]] bool names_parent(std::string_view attribute);

/// Whether the card of this partition was named by this: an earlier version wrote it without the partition's name.
[[nodiscard]] bool is_parent_of(std::string_view parent, std::string_view identity);

/// What names the device, by this attribute, or by a well-known one if that is empty.
[[nodiscard]] std::optional<DeviceIdentity> identity_in(const Listing& listing, std::string_view name,
                                                        const PublishedDevice& device, std::string_view attribute);

/// The name of the card alone: of a partition its parent's.
[[nodiscard]] std::string_view card_name_of(const DeviceIdentity& identity, std::string_view device);

/// Marks of the cards, by their partitions' parents, this attribute, or a well-known one; without this card.
[[nodiscard]] std::set<std::string> marks_of(const Listing& listing, std::string_view attribute,
                                             std::string_view without = {});
[[nodiscard]] std::string mark_of(std::string_view card_name);

/// Whether the pool had two cards or more with names and none of these is there any more: it is the driver that names
/// them anew.
[[nodiscard]] bool are_all_renamed(const std::set<std::string>& before, const std::set<std::string>& now);

}  // namespace dhc
