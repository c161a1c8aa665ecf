#include "domain/cluster/gang.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/cluster/world.h"
#include "domain/contract/names.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/model/proto_decoder.h"

using namespace dhc;

namespace {

constexpr auto kLws = R"("leaderworkerset.sigs.k8s.io/name":"vllm","leaderworkerset.sigs.k8s.io/group-key":"3f2")";
constexpr auto kJobSet = R"("jobset.sigs.k8s.io/jobset-name":"train","jobset.sigs.k8s.io/jobset-uid":"u-7")";

/// A pod without a device, as the API server writes it.
k8s::Pod read(const std::string& annotations, const std::string& labels = "", const std::string& spec = "",
              const std::string& uid = "u", const std::string& ns = "ml") {
  const auto text =
      fmt::format(R"({{"kind":"Pod","metadata":{{"namespace":"{}","name":"p-{}","uid":"{}","resourceVersion":"1",)"
                  R"("annotations":{{{}}},"labels":{{{}}}}},"spec":{{"nodeName":"node-a"{}}},)"
                  R"("status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True"}},)"
                  R"({{"type":"PodScheduled","status":"True"}}]}}}})",
                  ns, uid, uid, annotations, labels, spec);
  auto object = k8s::Decoder(k8s::Kind::Pod, kKeptFields).decode_object(text);
  REQUIRE(object.has_value());
  return std::get<k8s::Pod>(*std::move(object));
}

std::string key_of(const k8s::Pod& pod) {
  const auto gang = gang_of(pod);
  return gang ? gang->key : "none";
}

}  // namespace

TEST_CASE("A pod without a device is kept whole if it carries the mark of a gang, with its readiness, and only then") {
  CHECK_FALSE(is_kept_whole(read("", R"("app":"a")")));
  CHECK_FALSE(is_kept_whole(read(R"("device-health.io/opt-out":"true")")));
  for (const auto* labels : {kLws, kJobSet, R"("device-health.io/gang":"g")"}) {
    const auto pod = read("", labels);
    CHECK(is_kept_whole(pod));
    REQUIRE(pod.conditions.size() == 1);
    CHECK(pod.conditions.front().type == "Ready");
  }
  CHECK(is_kept_whole(read(R"("device-health.io/gang":"g")")));
  CHECK(is_kept_whole(read("", "", R"(,"schedulingGroup":{"podGroupName":"pg"})")));
}

TEST_CASE(
    "Of several marks the one that the pod's author wrote for us counts, then PodGroup, LeaderWorkerSet, JobSet") {
  const std::string group = R"(,"schedulingGroup":{"podGroupName":"pg"})";
  const std::string all = std::string(kLws) + "," + kJobSet;
  CHECK(key_of(read(R"("device-health.io/gang":"mine")", all + R"(,"device-health.io/gang":"label")", group)) ==
        "ml/gang/mine");
  CHECK(key_of(read("", all + R"(,"device-health.io/gang":"label")", group)) == "ml/gang/label");
  CHECK(key_of(read("", all, group)) == "ml/PodGroup/pg");
  CHECK(key_of(read("", all)) == "ml/LeaderWorkerSet/vllm/3f2");
  CHECK(key_of(read("", kJobSet)) == "ml/JobSet/u-7");
  CHECK(key_of(read("", R"("jobset.sigs.k8s.io/jobset-name":"train")")) == "ml/JobSet/train");
  CHECK(key_of(read("", R"("app":"a")")) == "none");
  CHECK(gang_of(read("", kLws))->words == "LeaderWorkerSet vllm (group 3f2)");
  CHECK(gang_of(read("", kJobSet))->words == "JobSet train");
}

TEST_CASE("A gang is of one namespace: the same name in another one is another gang") {
  const auto here = read(R"("device-health.io/gang":"g")");
  const auto there = read(R"("device-health.io/gang":"g")", "", "", "v", "web");
  CHECK(key_of(here) != key_of(there));
  // What stands before the slash is the namespace's own, whatever a tenant writes behind it.
  CHECK(key_of(read(R"("device-health.io/gang":"x/../web/gang/g")")).starts_with("ml/gang/"));
}

TEST_CASE("A name that is none makes no gang and says why, and the next mark counts") {
  for (const auto& name : {std::string(), std::string("a b"), std::string("\\u0007"), std::string(254, 'a')}) {
    CAPTURE(name);
    const auto pod = read(fmt::format(R"("device-health.io/gang":"{}")", name), kJobSet);
    CHECK(key_of(pod) == "ml/JobSet/u-7");
    REQUIRE(refused_gang_name(pod));
    CHECK(refused_gang_name(pod)->find("1 to 253") != std::string::npos);
  }
  const auto longest = read(fmt::format(R"("device-health.io/gang":"{}")", std::string(253, 'a')));
  CHECK(key_of(longest) != "none");
  CHECK_FALSE(refused_gang_name(longest));
  CHECK_FALSE(refused_gang_name(read("", kJobSet)));
}

TEST_CASE("The World knows the members of a gang as they come, change their gang and go") {
  World world;
  const Now now{};
  const auto put = [&](const k8s::Pod& pod) { (void)world.apply(k8s::Delivery(k8s::Upsert{pod}), now); };
  const std::string one = R"("device-health.io/gang":"one")";
  put(read(one, "", "", "a"));
  put(read(one, "", "", "b"));
  CHECK(std::vector<std::string>(world.members_of("ml/gang/one")) == std::vector<std::string>{"a", "b"});
  put(read(R"("device-health.io/gang":"two")", "", "", "b"));
  CHECK(std::vector<std::string>(world.members_of("ml/gang/one")) == std::vector<std::string>{"a"});
  CHECK(std::vector<std::string>(world.members_of("ml/gang/two")) == std::vector<std::string>{"b"});
  put(read("", "", "", "b"));
  CHECK(world.members_of("ml/gang/two").empty());
  CHECK(world.pod("b") == nullptr);
  (void)world.apply(k8s::Delivery(k8s::Remove{.kind = k8s::Kind::Pod, .ns = "ml", .name = "p-a", .uid = "a"}), now);
  CHECK(world.members_of("ml/gang/one").empty());
}

TEST_CASE("The World keeps a namespace's budgets: one that was made anew outlives the deletion of the old one") {
  World world;
  const Now now{};
  const auto budget = [](const std::string& ns, const std::string& name, const std::string& uid) {
    k8s::DisruptionBudget found;
    found.meta.ns = ns;
    found.meta.name = name;
    found.meta.uid = uid;
    return found;
  };
  const auto apply = [&](k8s::Delivery delivery) { return world.apply(std::move(delivery), now); };
  CHECK(apply(k8s::Upsert{budget("ml", "a", "1")}));
  CHECK_FALSE(apply(k8s::Upsert{budget("ml", "a", "1")}));
  (void)apply(k8s::Upsert{budget("ml-2", "a", "2")});
  CHECK(world.budgets_in("ml").size() == 1);
  (void)apply(k8s::Upsert{budget("ml", "a", "3")});
  (void)apply(k8s::Remove{.kind = k8s::Kind::PodDisruptionBudget, .ns = "ml", .name = "a", .uid = "1"});
  REQUIRE(world.budgets_in("ml").size() == 1);
  CHECK(world.budgets_in("ml").front()->meta.uid == "3");
  (void)world.take_touched();
  (void)apply(k8s::Remove{.kind = k8s::Kind::PodDisruptionBudget, .ns = "ml", .name = "a", .uid = "3"});
  CHECK(world.budgets_in("ml").empty());
  CHECK(world.take_touched().namespaces().contains("ml"));
  k8s::Snapshot list;
  list.kind = k8s::Kind::PodDisruptionBudget;
  list.objects.emplace_back(budget("ml", "b", "4"));
  (void)apply(std::move(list));
  CHECK(world.budgets_in("ml-2").empty());
  CHECK(world.budgets_in("ml").size() == 1);
}

TEST_CASE("The World knows which PodGroups are disrupted as a whole, and who is in them, whatever else marks a pod") {
  World world;
  const Now now{};
  const auto apply = [&](k8s::Delivery delivery) { return world.apply(std::move(delivery), now); };
  const auto group = [](bool is_indivisible, const std::string& uid, const std::string& ns = "ml") {
    k8s::PodGroup found;
    found.meta.ns = ns;
    found.meta.name = "pg";
    found.meta.uid = uid;
    found.is_indivisible = is_indivisible;
    return found;
  };
  const std::string in_group = R"(,"schedulingGroup":{"podGroupName":"pg"})";
  const auto plain = read("", "", in_group, "a");
  const auto marked = read(R"("device-health.io/gang":"g")", "", in_group, "b");
  (void)apply(k8s::Upsert{plain});
  (void)apply(k8s::Upsert{marked});
  CHECK(std::vector<std::string>(world.pod_group_of(plain)) == std::vector<std::string>{"a", "b"});
  CHECK(std::vector<std::string>(world.members_of("ml/PodGroup/pg")) == std::vector<std::string>{"a"});
  CHECK_FALSE(world.is_indivisible(plain));
  CHECK_FALSE(apply(k8s::Upsert{group(false, "1")}));
  CHECK_FALSE(world.is_indivisible(plain));
  CHECK(apply(k8s::Upsert{group(true, "2", "web")}));
  CHECK_FALSE(world.is_indivisible(plain));
  (void)world.take_touched();
  CHECK(apply(k8s::Upsert{group(true, "3")}));
  CHECK(world.take_touched().namespaces().contains("ml"));
  CHECK_FALSE(apply(k8s::Upsert{group(true, "3")}));
  CHECK(world.is_indivisible(marked));
  // Of one that has been made anew the deletion of the old one comes late.
  (void)apply(k8s::Remove{.kind = k8s::Kind::PodGroup, .ns = "ml", .name = "pg", .uid = "1"});
  CHECK(world.is_indivisible(plain));
  (void)apply(k8s::Remove{.kind = k8s::Kind::PodGroup, .ns = "ml", .name = "pg", .uid = "3"});
  CHECK_FALSE(world.is_indivisible(plain));
  (void)apply(k8s::Upsert{group(true, "4")});
  CHECK(apply(k8s::Upsert{group(false, "5")}));
  CHECK_FALSE(world.is_indivisible(plain));
  k8s::Snapshot list;
  list.kind = k8s::Kind::PodGroup;
  list.objects.emplace_back(group(true, "6"));
  (void)apply(list);
  CHECK(world.is_indivisible(plain));
  list.objects.clear();
  list.served = false;
  (void)apply(list);
  CHECK_FALSE(world.is_indivisible(plain));
}
