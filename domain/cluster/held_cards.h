#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/now.h"
#include "base/shared_text.h"
#include "base/sorted_texts.h"
#include "domain/contract/device_key.h"
#include "k8s-client/model/shared_list.h"

namespace dhc {

class World;

/// The physical devices that pods hold, place by place: a node for a plugin's resource, a pool for a DRA driver.
/// Counted as holders come and go, so that what a workload's share is costs nothing of the cluster's size. Part of the
/// World.
class HeldCards {
 public:
  struct Place {
    DeviceKey at;                          ///< Of its devices, without a name.
    SortedTexts devices;                   ///< By name, those that have a holder,
    bool has_nameless = false;             ///< and whether the one without a name has: a plugin may tell of such.
    std::int64_t cards = 0;                ///< Physical ones among them.
    SharedText unit;                       ///< What breaks together: the node, or a pool of the network.
    std::optional<WallTime> driver_began;  ///< Its driver or plugin there; none: not known.
    /// How many of the physical ones pods hold that run an image, by `image_names_of`, sorted by name.
    std::vector<std::pair<k8s::SharedEntry<std::string>, std::int64_t>> images;
    /// The releases of drivers or plugins that may serve them, by `ground_of_release`, sorted.
    std::vector<k8s::SharedEntry<std::string>> releases;

    /// Of its devices that have a holder.
    [[nodiscard]] std::vector<DeviceKey> keys() const;
    /// How many of the physical ones pods hold that run the image.
    [[nodiscard]] std::int64_t count_of(std::string_view image) const;
    /// Whether the release may serve them.
    [[nodiscard]] bool has_release(std::string_view release) const;
  };

  /// The device has a holder.
  void add(const DeviceKey& key);
  /// The device has no holder any more.
  void remove(const DeviceKey& key);
  /// Another pod holds the device, or its pod runs another image.
  void note_holder(const DeviceKey& key);
  /// The pool's node, or the cards of its devices, may be others.
  void note_pool(const SharedText& driver, const SharedText& pool);
  /// Who reports on the node's devices, or since when, may be another.
  void note_node(const SharedText& node);

  /// Counts what has changed since the last call: once a turn, after whatever the counts depend on.
  void settle(const World& world);

  /// Null: no device is held there.
  [[nodiscard]] const Place* place_of(const DeviceKey& key) const;
  /// The places of the driver or resource in the same unit, this one among them.
  [[nodiscard]] std::vector<const Place*> places_beside(const DeviceKey& key) const;
  /// The places of the driver or resource in a unit.
  [[nodiscard]] std::vector<const Place*> places_in(std::string_view unit, std::string_view scope) const;
  /// How many physical devices of the driver or resource are held.
  [[nodiscard]] std::int64_t count(std::string_view scope) const;
  /// Of those the ones whose driver or plugin began no earlier than `then`, or it is not known when.
  [[nodiscard]] std::int64_t count_since(std::string_view scope, WallTime then) const;
  /// How many of them pods hold that run the image: all, and as above.
  [[nodiscard]] std::int64_t count_of(std::string_view scope, std::string_view image) const;
  [[nodiscard]] std::int64_t count_of_since(std::string_view scope, std::string_view image, WallTime then) const;
  /// How many of them are at places that the release may serve: all, and of those that pods hold which run the image.
  [[nodiscard]] std::int64_t count_at(std::string_view scope, std::string_view release) const;
  [[nodiscard]] std::int64_t count_of_at(std::string_view scope, std::string_view image,
                                         std::string_view release) const;
  /// Looks at the places of the driver or resource where a pod holds a device that runs the image, in their order, up
  /// to the first for which `is_it` is true; whether there is one.
  template <class IsIt>
  bool find_place(std::string_view scope, std::string_view image, const IsIt& is_it) const {
    const auto* found = find(scope, image);
    return found != nullptr &&
           std::ranges::any_of(found->places, [&](const auto& at) { return is_it(places_.at(at)); });
  }

 private:
  /// Cards by the start of their driver or plugin; those of which it is not known come first.
  using ByStart = std::map<std::optional<WallTime>, std::int64_t>;
  struct Image {
    k8s::SharedEntry<std::string> name;
    std::int64_t cards = 0;
    ByStart by_start;
    std::map<std::string, std::int64_t, std::less<>> by_release;
    std::set<DeviceKey> places;
  };
  struct Release {
    k8s::SharedEntry<std::string> name;
    std::int64_t cards = 0;
  };
  struct Scope {
    std::int64_t cards = 0;
    ByStart by_start;
    std::map<std::string, Image, std::less<>> images;
    std::map<std::string, Release, std::less<>> releases;
  };
  template <class Counts>
  static void change(Counts& counts, const typename Counts::key_type& what, std::int64_t cards);
  static std::int64_t count_since(const ByStart& counts, WallTime then);
  void count_images(Place& place, const World& world);
  void name_releases(Place& place, const DeviceKey& key, const World& world);
  [[nodiscard]] const Image* find(std::string_view scope, std::string_view image) const;
  void count_in(const Place& place);
  void count_out(const Place& place);

  std::map<DeviceKey, Place> places_;  // by `at`
  std::map<SharedText, Scope, std::less<>> scopes_;
  std::map<std::pair<SharedText, SharedText>, std::set<DeviceKey>> units_;  // by unit and scope
  std::set<DeviceKey> stale_;
};

}  // namespace dhc
