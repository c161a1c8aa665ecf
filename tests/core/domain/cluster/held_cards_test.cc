#include "domain/cluster/held_cards.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "domain/cluster/running_images.h"
#include "domain/cluster/world.h"
#include "tests/support/core/schedules.h"

namespace dhc::test {

namespace {

const std::string kHeldDriver = "gpu.example.com";
const std::string kHeldResource = "example.com/gpu";
const std::array<std::string, 3> kReleases = {"at release/ml/driver/r0", "at release/ml/driver/r1",
                                              "at release/ml/driver/r2"};

/// A cluster whose pods, slices and drivers come and go at random.
class ComingAndGoing {
 public:
  explicit ComingAndGoing(unsigned seed) : dice_(seed) {}

  void step() {
    now_.mono += Seconds(20);
    now_.wall += Seconds(20);
    // A copy counts as what it was copied from, whatever becomes of that.
    if (dice_.one_in(10)) world_ = World(world_);
    for (int change = 1 + dice_.below(3); change > 0; --change) befall();
    world_.refresh(now_);
  }

  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] WallTime wall() const { return now_.wall; }

 private:
  std::string number(int end) { return std::to_string(dice_.below(end)); }
  std::string any_node() { return "node-" + number(3); }

  template <class Object>
  void send(Object object) {
    object.meta.resource_version = std::to_string(++version_);
    world_.apply(k8s::Delivery(k8s::Upsert{std::move(object)}), now_);
  }

  static k8s::Pod pod_named(const std::string& name, const std::string& node) {
    k8s::Pod pod;
    pod.meta.ns = "ml";
    pod.meta.name = name;
    pod.meta.uid = "uid-" + name;
    pod.node_name = node;
    pod.phase = k8s::PodPhase::Running;
    return pod;
  }

  /// One device may be held by containers of two pods, and of two images.
  SlimVector<SharedText> run_images(k8s::Pod& pod) {
    std::vector<k8s::ContainerImage> images;
    for (const auto* container : {"a", "b"}) {
      if (!dice_.one_in(3)) images.push_back({.container = container, .image = "train:" + number(3)});
    }
    if (!images.empty()) pod.images = std::move(images);
    SlimVector<SharedText> holds = {"a", "b"};
    if (dice_.one_in(3)) holds.erase(holds.begin());
    return holds;
  }

  void begin_plugin_pod() {
    const auto n = number(5);
    auto pod = pod_named("plugin-" + n, "node-" + std::to_string(std::stoi(n) % 3));
    k8s::AllocatedResource resource{.name = kHeldResource, .devices = {}};
    for (int device = 0; device < 2; ++device) {
      if (dice_.one_in(3)) continue;
      const auto health = dice_.one_in(4) ? k8s::Health::Unhealthy : k8s::Health::Healthy;
      resource.devices.push_back(
          {.resource_id = dice_.one_in(6) ? std::string() : "GPU-" + number(2) + "::" + std::to_string(device),
           .health = health,
           .message = {}});
    }
    for (auto& device : resource.devices) device.containers = run_images(pod);
    pod.allocated = {std::move(resource)};
    if (dice_.one_in(5)) pod.phase = k8s::PodPhase::Succeeded;
    send(std::move(pod));
  }

  void begin_claim_pod() {
    const auto n = number(5);
    k8s::ResourceClaim claim;
    claim.meta.ns = "ml";
    claim.meta.name = "claim-" + n;
    claim.meta.uid = "uid-claim-" + n;
    claim.allocated = !dice_.one_in(6);
    auto pod = pod_named("dra-" + n, any_node());
    claim.reserved_for = {{.api_group = "", .resource = "pods", .name = pod.meta.name, .uid = pod.meta.uid}};
    if (claim.allocated) {
      for (int result = dice_.below(3); result >= 0; --result) {
        claim.results.push_back(
            {.request = "r", .driver = kHeldDriver, .pool = "pool-" + number(3), .device = "gpu-" + number(3)});
      }
    }
    pod.claims = {{.name = "gpu", .claim_name = claim.meta.name}};
    (void)run_images(pod);
    send(std::move(claim));
    send(std::move(pod));
  }

  void publish() {
    k8s::ResourceSlice slice;
    const auto n = number(3);
    slice.meta.name = "slice-" + n;
    slice.meta.uid = "uid-slice-" + n + "-" + number(2);
    slice.driver = kHeldDriver;
    slice.pool = "pool-" + n;
    slice.generation = ++version_;
    slice.pool_slices = 1;
    if (!dice_.one_in(4)) slice.node_name = any_node();
    for (int device = 0; device < 3; ++device) {
      slice.devices.push_back({.name = "gpu-" + std::to_string(device),
                               .taints = {},
                               .attributes = {{"resource.example.com/pciBusID", "bus-" + number(2)}}});
    }
    send(std::move(slice));
  }

  void begin_driver() {
    const auto node = any_node();
    auto pod = pod_named("driver-" + node, node);
    pod.kubelet_plugin = true;
    pod.plugin_folders = {"device-plugins", "plugins"};
    pod.meta.controller =
        k8s::OwnerRef{.api_version = "apps/v1", .kind = "DaemonSet", .name = "driver", .uid = "uid-ds"};
    pod.last_start = now_.wall - Seconds(dice_.below(10'000));
    if (!dice_.one_in(4)) pod.meta.labels = {{std::string(k8s::kRevisionLabel), "r" + number(3)}};
    send(std::move(pod));
  }

  void lose(k8s::Kind kind, const std::string& ns, const std::string& name, const std::string& uid) {
    k8s::Remove remove;
    remove.kind = kind;
    remove.ns = ns;
    remove.name = name;
    remove.uid = uid;
    world_.apply(k8s::Delivery(std::move(remove)), now_);
  }

  void befall() {
    const auto n = number(5);
    switch (dice_.below(9)) {
      case 0:
      case 1:
        return begin_plugin_pod();
      case 2:
      case 3:
        return begin_claim_pod();
      case 4:
        return publish();
      case 5:
        return begin_driver();
      case 6:
        return lose(k8s::Kind::Pod, "ml", "plugin-" + n, "uid-plugin-" + n);
      case 7:
        return lose(k8s::Kind::Pod, "ml", "dra-" + n, "uid-dra-" + n);
      default:
        if (dice_.one_in(2)) return lose(k8s::Kind::Pod, "ml", "driver-node-0", "uid-driver-node-0");
        return lose(k8s::Kind::ResourceSlice, "", "slice-0", "uid-slice-0-0");
    }
  }

  Dice dice_;
  World world_;
  Now now_{.mono = MonoTime(Seconds(100)), .wall = WallTime(Seconds(1'800'000'000))};
  int version_ = 0;
};

/// What is held, counted from the devices that have a holder, one by one.
struct Counted {
  struct Place {
    std::set<std::string> cards;
    std::map<std::string, std::set<std::string>> images;
    std::string unit;
    std::optional<WallTime> began;
    std::set<std::string> releases;
  };
  explicit Counted(const World& world) {
    for (const auto& [key, state] : world.tracker().devices()) {
      if (state.holders.empty()) continue;
      auto& place = places[{key.scope, key.place}];
      place.cards.insert(std::string(world.inventory().card_of(key)));
      for (const auto& uid : state.holders) {
        const auto& record = *world.pod(uid);
        const auto& held = *find_held_device(record.held_devices, key);
        for (const auto& image : image_names_of(record.pod, held)) {
          place.images[image].insert(std::string(world.inventory().card_of(key)));
        }
      }
      place.unit = world.node_of(key).empty() ? key.place.str() : world.node_of(key);
      const auto reporter = world.reporter_of(key);
      place.began = reporter ? std::optional(reporter->began) : std::nullopt;
      for (const auto& [release, made] : world.releases_of(key)) place.releases.insert(release);
    }
  }
  [[nodiscard]] std::int64_t at(const std::string& scope, const std::string& release) const {
    std::int64_t cards = 0;
    for (const auto& [name, place] : places) {
      if (name.first == scope && place.releases.contains(release)) cards += std::ssize(place.cards);
    }
    return cards;
  }
  [[nodiscard]] std::int64_t of_image_at(const std::string& scope, const std::string& image,
                                         const std::string& release) const {
    std::int64_t cards = 0;
    for (const auto& [name, place] : places) {
      if (name.first != scope || !place.releases.contains(release) || !place.images.contains(image)) continue;
      cards += std::ssize(place.images.at(image));
    }
    return cards;
  }
  [[nodiscard]] std::int64_t since(const std::string& scope, WallTime then) const {
    std::int64_t cards = 0;
    for (const auto& [name, place] : places) {
      if (name.first == scope && (!place.began || *place.began >= then)) cards += std::ssize(place.cards);
    }
    return cards;
  }
  [[nodiscard]] std::int64_t of_image(const std::string& scope, const std::string& image, WallTime then) const {
    std::int64_t cards = 0;
    for (const auto& [name, place] : places) {
      if (name.first != scope || !place.images.contains(image)) continue;
      if (!place.began || *place.began >= then) cards += std::ssize(place.images.at(image));
    }
    return cards;
  }
  [[nodiscard]] std::int64_t beside(const std::string& scope, const std::string& unit) const {
    std::int64_t cards = 0;
    for (const auto& [name, place] : places) {
      if (name.first == scope && place.unit == unit) cards += std::ssize(place.cards);
    }
    return cards;
  }
  std::map<std::pair<std::string, std::string>, Place> places;
};

}  // namespace

TEST_CASE("However pods, slices and drivers come and go, the held cards are those that a count of all finds") {
  std::size_t moved = 0;
  std::size_t shared = 0;
  std::size_t dated = 0;
  std::int64_t ran = 0;
  std::int64_t served = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    ComingAndGoing cluster(seed);
    std::map<std::string, std::string> units;
    for (int step = 0; step < 60; ++step) {
      cluster.step();
      CAPTURE(seed);
      CAPTURE(step);
      const auto& world = cluster.world();
      const auto& held = world.held_cards();
      const Counted counted(world);
      for (const auto& scope : {kHeldDriver, kHeldResource}) {
        CHECK(held.count(scope) == counted.since(scope, WallTime::min()));
        for (const auto back : {100, 3'000, 6'000}) {
          const auto then = cluster.wall() - Seconds(back);
          CHECK(held.count_since(scope, then) == counted.since(scope, then));
        }
        for (const auto* name : {"train:0", "train:1", "train:2"}) {
          const auto image = std::string("ml/container image/") + name;
          const auto then = cluster.wall() - Seconds(3'000);
          CHECK(held.count_of(scope, image) == counted.of_image(scope, image, WallTime::min()));
          CHECK(held.count_of_since(scope, image, then) == counted.of_image(scope, image, then));
          ran += held.count_of(scope, image);
          for (const auto& release : kReleases) {
            CHECK(held.count_of_at(scope, image, release) == counted.of_image_at(scope, image, release));
            served += held.count_of_at(scope, image, release);
          }
        }
        for (const auto& release : kReleases) {
          CHECK(held.count_at(scope, release) == counted.at(scope, release));
        }
      }
      for (const auto& [key, state] : world.tracker().devices()) {
        const auto* place = held.place_of(key);
        const auto found = counted.places.find({key.scope, key.place});
        REQUIRE((place != nullptr) == (found != counted.places.end()));
        if (place == nullptr) continue;
        CHECK(place->unit == found->second.unit);
        CHECK(place->images.size() == found->second.images.size());
        for (const auto& [image, cards] : found->second.images) CHECK(place->count_of(image) == std::ssize(cards));
        CHECK(place->driver_began == found->second.began);
        CHECK(place->releases.size() == found->second.releases.size());
        for (const auto& release : found->second.releases) CHECK(place->has_release(release));
        CHECK(held.places_in(place->unit, key.scope).size() == held.places_beside(key).size());
        std::int64_t beside = 0;
        for (const auto* other : held.places_beside(key)) beside += other->cards;
        CHECK(beside == counted.beside(key.scope, place->unit));
        const auto known = units.try_emplace(key.scope + key.place, place->unit).first;
        if (std::exchange(known->second, place->unit) != place->unit) ++moved;
        if (std::ssize(place->devices) > place->cards) ++shared;
        if (place->driver_began) ++dated;
      }
    }
  }
  // What the count could have missed has happened.
  CHECK(moved > 20);
  CHECK(shared > 100);
  CHECK(dated > 100);
  CHECK(ran > 1000);
  CHECK(served > 1000);
}

}  // namespace dhc::test
