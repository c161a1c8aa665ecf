#include "domain/cluster/physical_cards.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "k8s-client/protocol/ascii.h"

namespace dhc {

namespace {

/// What names a card, in the order in which they give it its name.
enum class Naming : unsigned char { BusId, Uuid, CounterSet };
using Name = std::pair<Naming, std::string_view>;

/// The UUIDs that some device calls its card's.
std::set<std::string_view> parents_in(const std::vector<const k8s::SliceDevice*>& devices) {
  std::set<std::string_view> parents;
  for (const auto* device : devices) {
    for (const auto& [attribute, value] : device->attributes) {
      if (!value.empty() && attribute_word(attribute) == "parentuuid") parents.insert(value);
    }
  }
  return parents;
}

std::vector<Name> names_of(const k8s::SliceDevice& device, const std::set<std::string_view>& parents) {
  std::vector<Name> names;
  for (const auto& [attribute, value] : device.attributes) {
    if (value.empty()) continue;
    const auto word = attribute_word(attribute);
    if (word == "pcibusid") names.emplace_back(Naming::BusId, value);
    if (word == "parentuuid" || (word == "uuid" && parents.contains(value))) names.emplace_back(Naming::Uuid, value);
  }
  if (!device.counter_set.empty()) names.emplace_back(Naming::CounterSet, device.counter_set);
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

std::map<std::string_view, std::string> physical_cards(const std::vector<const k8s::SliceDevice*>& devices) {
  const auto parents = parents_in(devices);
  Sets sets(devices.size());
  std::map<Name, std::size_t> named;  // the first device with each name
  for (std::size_t at = 0; at < devices.size(); ++at) {
    for (const auto& name : names_of(*devices[at], parents)) {
      const auto [first, is_new] = named.try_emplace(name, at);
      if (!is_new) sets.join(first->second, at);
    }
  }
  std::map<std::size_t, std::string_view> best;  // by set; the names come in their order
  for (const auto& [name, at] : named) best.try_emplace(sets.of(at), name.second);
  std::map<std::string_view, std::string> cards;
  for (std::size_t at = 0; at < devices.size(); ++at) {
    const auto name = best.find(sets.of(at));
    cards.emplace(devices[at]->name, name == best.end() ? std::string_view(devices[at]->name) : name->second);
  }
  return cards;
}

}  // namespace dhc
