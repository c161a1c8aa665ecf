#include "domain/cluster/physical_cards.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "k8s-client/protocol/ascii.h"

namespace dhc {

namespace {

/// What names a card, in the order in which they give it its name.
enum class Naming : unsigned char { BusId, Uuid, CounterSet };

struct Name {
  Naming naming = Naming::BusId;
  std::size_t slice = 0;  ///< Of a counter set; else 0.
  std::string_view text;
  friend auto operator<=>(const Name&, const Name&) = default;
};

struct Published {
  const k8s::SliceDevice* device = nullptr;
  std::size_t slice = 0;
};

std::vector<Published> devices_in(const std::vector<const k8s::ResourceSlice*>& slices) {
  std::vector<Published> devices;
  for (std::size_t slice = 0; slice < slices.size(); ++slice) {
    for (const auto& device : slices[slice]->devices) devices.push_back({.device = &device, .slice = slice});
  }
  return devices;
}

/// The UUIDs that some device calls its card's.
std::set<std::string_view> parents_in(const std::vector<Published>& devices) {
  std::set<std::string_view> parents;
  for (const auto& published : devices) {
    for (const auto& [attribute, value] : published.device->attributes) {
      if (!value.empty() && attribute_word(attribute) == "parentuuid") parents.insert(value);
    }
  }
  return parents;
}

std::vector<Name> names_of(const Published& published, const std::set<std::string_view>& parents) {
  std::vector<Name> names;
  for (const auto& [attribute, value] : published.device->attributes) {
    if (value.empty()) continue;
    const auto word = attribute_word(attribute);
    if (word == "pcibusid") names.push_back({.naming = Naming::BusId, .text = value});
    if (word == "parentuuid" || (word == "uuid" && parents.contains(value))) {
      names.push_back({.naming = Naming::Uuid, .text = value});
    }
  }
  const auto& set = published.device->counter_set;
  if (!set.empty()) names.push_back({.naming = Naming::CounterSet, .slice = published.slice, .text = set});
  return names;
}

/// Sets of devices that are joined one by one.
class Sets {
 public:
  explicit Sets(std::size_t count) : above_(count) { std::iota(above_.begin(), above_.end(), std::size_t{0}); }

  std::size_t of(std::size_t one) {
    while (above_[one] != one) one = above_[one] = above_[above_[one]];
    return one;
  }
  void join(std::size_t a, std::size_t b) { above_[of(b)] = of(a); }

 private:
  std::vector<std::size_t> above_;
};

}  // namespace

std::string attribute_word(std::string_view attribute) {
  return k8s::to_lower_ascii(attribute.substr(attribute.rfind('/') + 1));
}

std::map<std::string_view, std::string> physical_cards(const std::vector<const k8s::ResourceSlice*>& slices) {
  const auto devices = devices_in(slices);
  const auto parents = parents_in(devices);
  Sets sets(devices.size());
  std::map<Name, std::size_t> named;  // the first device with each name
  for (std::size_t at = 0; at < devices.size(); ++at) {
    for (const auto& name : names_of(devices[at], parents)) {
      const auto [first, is_new] = named.try_emplace(name, at);
      if (!is_new) sets.join(first->second, at);
    }
  }
  std::map<std::size_t, Name> best;  // by set; the names come in their order
  for (const auto& [name, at] : named) best.try_emplace(sets.of(at), name);
  std::map<std::size_t, std::string_view> first;  // by set: its first device by name
  for (std::size_t at = 0; at < devices.size(); ++at) {
    const std::string_view name = devices[at].device->name;
    auto& known = first.try_emplace(sets.of(at), name).first->second;
    known = std::min(known, name);
  }
  std::map<std::string_view, std::string> cards;
  for (std::size_t at = 0; at < devices.size(); ++at) {
    const std::string_view device = devices[at].device->name;
    const auto found = best.find(sets.of(at));
    std::string card(found == best.end() ? device : found->second.text);
    // Two slices may have a set of one name.
    if (found != best.end() && found->second.naming == Naming::CounterSet)
      card += "/" + std::string(first.at(sets.of(at)));
    cards.emplace(device, std::move(card));
  }
  return cards;
}

}  // namespace dhc
