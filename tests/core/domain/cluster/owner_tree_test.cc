#include "domain/cluster/owner_tree.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "domain/cluster/workload.h"
#include "domain/cluster/world.h"
#include "tests/support/core/schedules.h"

namespace dhc::test {

namespace {

/// Pods, Jobs, ReplicaSets and StatefulSets of two namespaces come, change whose they are, and go; a tenant may write
/// any owner, also in a circle, and one name for several.
class Owning {
 public:
  explicit Owning(unsigned seed) : dice_(seed) {}

  void step() {
    now_.mono += Seconds(1);
    now_.wall += Seconds(1);
    if (dice_.one_in(10)) world_ = World(world_);
    switch (dice_.below(6)) {
      case 0:
        return remove();
      case 1:
        return list_again();
      case 2:
      case 3:
        return put_owner();
      default:
        return put_pod();
    }
  }

  [[nodiscard]] const World& world() const { return world_; }

 private:
  std::string any_ns() { return "ns-" + std::to_string(dice_.below(2)); }

  std::optional<k8s::OwnerRef> any_controller() {
    if (dice_.one_in(5)) return std::nullopt;
    const char* const kinds[] = {"Job", "ReplicaSet", "StatefulSet", "Deployment"};
    const std::string kind = kinds[dice_.below(4)];
    const std::string api = kind == "Job" ? "batch/v1" : "apps/v1";
    const auto number = std::to_string(dice_.below(4));
    return k8s::OwnerRef{.api_version = api,
                         .kind = kind,
                         .name = kind + "-" + std::to_string(dice_.below(3)),
                         .uid = "uid-" + kind + "-" + number};
  }

  template <class T>
  T made(const std::string& kind, int names) {
    T object;
    const auto number = std::to_string(dice_.below(names));
    object.meta.ns = any_ns();
    object.meta.name = kind + "-" + number;
    object.meta.uid = "uid-" + kind + "-" + number;
    object.meta.resource_version = std::to_string(++version_);
    object.meta.controller = any_controller();
    return object;
  }

  void apply(k8s::Delivery delivery) { (void)world_.apply(std::move(delivery), now_); }

  void put_pod() {
    auto pod = made<k8s::Pod>("pod", 12);
    pod.node_name = "node";
    pod.phase = k8s::PodPhase::Running;
    pod.allocated = {
        {.name = "example.com/gpu", .devices = {{.resource_id = pod.meta.name, .health = {}, .message = {}}}}};
    apply(k8s::Upsert{std::move(pod)});
  }

  k8s::Owner owner_of(k8s::Kind kind) {
    auto owner = made<k8s::Owner>(kind == k8s::Kind::ReplicaSet ? "ReplicaSet" : "StatefulSet", 4);
    owner.kind = kind;
    return owner;
  }

  void put_owner() {
    if (dice_.one_in(2)) return apply(k8s::Upsert{made<k8s::Job>("Job", 4)});
    apply(k8s::Upsert{owner_of(dice_.one_in(2) ? k8s::Kind::ReplicaSet : k8s::Kind::StatefulSet)});
  }

  void remove() {
    const std::pair<k8s::Kind, std::string> kinds[] = {{k8s::Kind::Pod, "pod"},
                                                       {k8s::Kind::Job, "Job"},
                                                       {k8s::Kind::ReplicaSet, "ReplicaSet"},
                                                       {k8s::Kind::StatefulSet, "StatefulSet"}};
    const auto& [kind, word] = kinds[dice_.below(4)];
    const auto number = std::to_string(dice_.below(kind == k8s::Kind::Pod ? 12 : 4));
    apply(k8s::Remove{.kind = kind, .ns = any_ns(), .name = word + "-" + number, .uid = "uid-" + word + "-" + number});
  }

  void list_again() {
    const auto kind = dice_.one_in(2) ? k8s::Kind::ReplicaSet : k8s::Kind::StatefulSet;
    k8s::Snapshot snapshot{.kind = kind, .objects = {}, .served = true};
    for (int i = dice_.below(3); i > 0; --i) snapshot.objects.emplace_back(owner_of(kind));
    apply(std::move(snapshot));
  }

  Dice dice_;
  World world_;
  int version_ = 0;
  Now now_{.mono = MonoTime(Seconds(1)), .wall = WallTime(Seconds(1'800'000'000))};
};

/// All pods that have a controller, by workload: the first of those of one controller says it of all.
std::map<std::string, std::set<std::string>> pods_by_workload(const World& world) {
  std::map<std::pair<std::string, bool>, std::set<std::string>> groups;
  for (const auto& [uid, record] : world.pods()) {
    const auto& meta = record.pod.meta;
    if (meta.controller) groups[{meta.controller_identity(), meta.controller->kind == "Job"}].insert(uid);
  }
  std::map<std::string, std::set<std::string>> found;
  for (const auto& [group, uids] : groups) {
    found[workload_of(world.pod(*uids.begin())->pod, world)].insert(uids.begin(), uids.end());
  }
  return found;
}

}  // namespace

TEST_CASE("The pods of a workload are those that a look at all pods finds, whatever its owners have been") {
  int found = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Owning owning(seed);
    for (int step = 0; step < 60; ++step) {
      owning.step();
      for (const auto& [workload, uids] : pods_by_workload(owning.world())) {
        std::set<std::string> under;
        for (const auto* record : pods_of_workload(workload, owning.world())) under.insert(record->pod.meta.uid);
        CAPTURE(seed);
        CAPTURE(workload);
        REQUIRE(under == uids);
        ++found;
      }
    }
  }
  CHECK(found > 10'000);
}

}  // namespace dhc::test
