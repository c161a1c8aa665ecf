#include "tests/support/core/server_truth.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/names.h"
#include "tests/support/core/lab.h"
#include "tests/support/core/wide_caps.h"

using namespace dhc;
using namespace dhc::test;
using std::chrono::hours;
using std::chrono::minutes;

namespace {

constexpr auto kGpu = "example.com/gpu";
constexpr auto kDriver = "gpu.example.com";

/// Eight devices on a node, each held by a pod of a StatefulSet of its own, and a bad controller: the test itself.
struct Culprit : Lab {
  Culprit() {
    policy.policies.emplace_back();
    policy.policies.front().mode = Mode::Enforce;
    policy.policies.front().evict = EvictRules{};
    widen_caps(policy.limits);
    policy.limits.brake_at_least = 100;
    policy.limits.per_node = 100;
    policy.limits.max_in_flight = 100;
    policy.own_namespace = "device-health-system";
    truth.told(policy);
    cluster.add_node({"node-a", {{kGpu, 8}}, {}, {}});
    sim::PodShape shape;
    shape.resource = kGpu;
    for (int i = 0; i < 8; ++i) cluster.create_stateful_set("default", fmt::format("s{}", i), 1, shape);
    live_for(Seconds(20));
  }

  static std::string name_of(int i) { return fmt::format("s{}-0", i); }

  void live_for(Millis span) {
    for (Millis done{0}; done < span; done += Seconds(1)) {
      run_for(Seconds(1));
      truth.look(verdicts, true, now);
    }
  }

  void set(int i, std::string_view health) {
    cluster.set_device_health("node-a", plugin_device(name_of(i)), health);
    live_for(Seconds(15));
  }

  void evict_pod(int i) { evict_from(name_of(i), DeviceKey::plugin("node-a", kGpu, plugin_device(name_of(i)))); }

  void evict_from(const std::string& name, DeviceKey key) {
    eviction::EvictPod action;
    action.ns = "default";
    action.name = name;
    action.uid = uid(name);
    action.key = std::move(key);
    truth.before(action, true, now);
    CHECK(evict(action.name, action.uid).status == 201);
    CHECK(truth.after(action, now));
  }

  /// The names of what was broken, in order.
  std::string broken() {
    std::string names;
    for (const auto& text : truth.take_broken()) names += text.substr(0, text.find(':')) + " ";
    return names;
  }

  void send() { truth.told(policy); }

  /// Everything is as it was then, and the controller begins anew.
  void restore(const sim::Store& backup) {
    cluster.restore_etcd(backup);
    truth.etcd_restored();
    live_for(Seconds(20));
    truth.restarted();
    live_for(Seconds(20));
  }

  void annotate(std::string_view annotation) {
    sim::Json annotations;
    annotations[std::string(annotation)] = cluster.store().time_text();
    cluster.kubectl_patch(sim::Res::Nodes, "", "node-a", {{"metadata", {{"annotations", annotations}}}});
  }

  Policy policy;
  ServerTruth truth{cluster};
  std::vector<Verdict> verdicts;
};

/// A pod besides, on a device of a DRA driver of which the kubelet says Unknown, and a policy that asks for more than
/// Unhealthy.
struct SilentCulprit : Culprit {
  SilentCulprit() {
    for (const auto* word : {"PermanentlyUnhealthy", "Degraded"}) cluster.store().serve_health_word(word);
    policy.policies.front().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    policy.policies.front().match.health_words = {"PermanentlyUnhealthy"};
    send();
    cluster.add_node({"node-b", {}, {{kDriver, 2}}, {}});
    sim::PodShape shape;
    shape.device_class = kDriver;
    cluster.create_stateful_set("default", "t", 1, shape);
    live_for(Seconds(20));
    device = dra_device("t-0");
    say_of_it("Unknown");
  }
  void say_of_it(std::string_view health) {
    cluster.set_device_health("node-b", device, health);
    live_for(Seconds(15));
  }
  void taint(const std::string& key, const std::string& effect) {
    cluster.taint_device("node-b", device, {key, "79", effect});
    live_for(Seconds(5));
  }
  void evict_it() { evict_from("t-0", DeviceKey::dra(kDriver, "node-b", device)); }

  std::string device;
};

}  // namespace

TEST_CASE("An eviction from a device that the server shows as bad breaks nothing, any other I17") {
  Culprit culprit;
  culprit.set(0, "Unhealthy");
  culprit.evict_pod(0);
  CHECK(culprit.broken().empty());
  culprit.evict_pod(1);
  CHECK(culprit.broken() == "I17 ");
  culprit.set(2, "Unhealthy");
  culprit.set(2, "Healthy");
  culprit.evict_pod(2);
  CHECK(culprit.broken() == "I17 ");
}

TEST_CASE("Two more in flight than may be break I3, on a node and in the cluster") {
  Culprit culprit;
  culprit.set(0, "Unhealthy");
  culprit.set(1, "Unhealthy");
  SUBCASE("maxInFlight") { culprit.policy.limits.max_in_flight = 1; }
  SUBCASE("perNode") { culprit.policy.limits.per_node = 1; }
  culprit.send();
  culprit.evict_pod(0);
  CHECK(culprit.broken().empty());
  culprit.evict_pod(1);
  CHECK(culprit.broken() == "I3 ");
}

TEST_CASE("More in a minute than a full bucket and its flow break I3") {
  Culprit culprit;
  for (int i = 0; i < 3; ++i) culprit.set(i, "Unhealthy");
  culprit.policy.limits.evictions_per_minute = 1;
  culprit.send();
  culprit.evict_pod(0);
  culprit.evict_pod(1);
  CHECK(culprit.broken().empty());
  culprit.evict_pod(2);
  CHECK(culprit.broken() == "I3 ");
}

TEST_CASE("More in a day than the cap break I18, unless an operator has released it") {
  Culprit culprit;
  for (int i = 0; i < 3; ++i) culprit.set(i, "Unhealthy");
  culprit.policy.limits.cap_per_day = {.percent = 12, .at_least = 1};
  culprit.send();
  culprit.evict_pod(0);
  CHECK(culprit.broken().empty());
  culprit.evict_pod(1);
  CHECK(culprit.broken() == "I18 ");
  culprit.policy.cap_release = culprit.cluster.store().time_text();
  culprit.send();
  culprit.evict_pod(2);
  CHECK(culprit.broken().empty());
}

TEST_CASE("More devices of a Deployment in a day than its cap break I18, unless an operator has released it") {
  Culprit culprit;
  culprit.policy.limits.cap_owner_per_day = {.percent = 0, .at_least = 1};
  culprit.send();
  culprit.cluster.add_node({"node-b", {{kGpu, 3}}, {}, {}});
  sim::PodShape shape;
  shape.resource = kGpu;
  culprit.cluster.create_deployment("default", "poison", 3, shape);
  culprit.live_for(Seconds(20));
  std::vector<std::string> names;
  for (const auto& name : culprit.cluster.pod_names("default")) {
    if (name.starts_with("poison")) names.push_back(name);
  }
  REQUIRE(names.size() == 3);
  for (const auto& name : names) {
    culprit.cluster.set_device_health("node-b", culprit.plugin_device(name), "Unhealthy");
  }
  culprit.live_for(Seconds(15));
  const auto evict = [&](const std::string& name) {
    culprit.evict_from(name, DeviceKey::plugin("node-b", kGpu, culprit.plugin_device(name)));
  };
  evict(names[0]);
  CHECK(culprit.broken().empty());
  evict(names[1]);
  CHECK(culprit.broken() == "I18 ");
  culprit.policy.cap_release = culprit.cluster.store().time_text();
  culprit.send();
  evict(names[2]);
  CHECK(culprit.broken().empty());
}

TEST_CASE("An owner that is evicted from the same device again within the hour breaks I15") {
  Culprit culprit;
  const auto device = culprit.plugin_device("s0-0");
  culprit.set(0, "Unhealthy");
  culprit.evict_pod(0);
  culprit.cluster.set_device_health("node-a", device, "Healthy");
  culprit.live_for(minutes(2));
  REQUIRE(culprit.plugin_device("s0-0") == device);
  SUBCASE("within the hour") {
    culprit.set(0, "Unhealthy");
    culprit.evict_pod(0);
    CHECK(culprit.broken() == "I15 ");
  }
  SUBCASE("later") {
    culprit.live_for(hours(1));
    culprit.set(0, "Unhealthy");
    culprit.evict_pod(0);
    CHECK(culprit.broken().empty());
  }
}

TEST_CASE("Under a brake one pod goes at a time, and none before the first trial") {
  Culprit culprit;
  culprit.policy.limits.brake_at_least = 3;
  culprit.policy.policies.front().after = hours(10);  // nobody is asked why
  culprit.send();
  for (int i = 0; i < 2; ++i) culprit.set(i, "Unhealthy");
  culprit.evict_pod(0);
  CHECK(culprit.broken().empty());
  for (int i = 2; i < 6; ++i) culprit.set(i, "Unhealthy");
  culprit.evict_pod(1);
  CHECK(culprit.broken() == "I12 I12 ");  // of the node, and of the cluster
  culprit.live_for(minutes(30));
  culprit.evict_pod(2);
  CHECK(culprit.broken().empty());
  culprit.evict_pod(3);
  CHECK(culprit.broken() == "I12 I12 ");
}

TEST_CASE("A pod that stays on a bad device without a word breaks I4, once") {
  Culprit culprit;
  culprit.set(0, "Unhealthy");
  culprit.live_for(Seconds(60));
  CHECK(culprit.broken().empty());
  SUBCASE("nothing is said") {
    culprit.live_for(Seconds(60));
    CHECK(culprit.broken() == "I4 ");
  }
  SUBCASE("it carries a reason") {
    culprit.verdicts.emplace_back();
    culprit.verdicts.back().subject.uid = culprit.uid("s0-0");
    culprit.live_for(Seconds(60));
    CHECK(culprit.broken().empty());
  }
}

TEST_CASE("A driver's taint that a policy names is a signal, and no other taint is one") {
  SilentCulprit culprit;
  SUBCASE("named") {
    culprit.taint("gpu.example.com/xid", "NoSchedule");
    culprit.evict_it();
    CHECK(culprit.broken().empty());
    return;
  }
  SUBCASE("information") { culprit.taint("gpu.example.com/xid", "None"); }
  SUBCASE("another key") { culprit.taint("nic.example.com/link", "NoSchedule"); }
  SUBCASE("taken back") {
    culprit.taint("gpu.example.com/xid", "NoSchedule");
    culprit.cluster.untaint_device("node-b", culprit.device);
    culprit.live_for(Seconds(5));
  }
  culprit.evict_it();
  CHECK(culprit.broken() == "I17 ");
}

TEST_CASE("A word of the kubelet that a policy names is a signal") {
  SilentCulprit culprit;
  SUBCASE("named") {
    culprit.say_of_it("PermanentlyUnhealthy");
    culprit.evict_it();
    CHECK(culprit.broken().empty());
  }
  SUBCASE("another one") {
    culprit.say_of_it("Degraded");
    culprit.evict_it();
    CHECK(culprit.broken() == "I17 ");
  }
}

TEST_CASE("A pod that stays on a device with a named taint without a word breaks I4") {
  SilentCulprit culprit;
  culprit.taint("gpu.example.com/xid", "NoSchedule");
  culprit.live_for(minutes(2));
  CHECK(culprit.broken() == "I4 ");
}

TEST_CASE("Devices with a named taint engage a brake") {
  SilentCulprit culprit;
  culprit.policy.limits.brake_at_least = 1;
  culprit.policy.policies.front().after = hours(10);  // nobody is asked why
  culprit.send();
  culprit.taint("gpu.example.com/xid", "NoSchedule");
  culprit.evict_it();
  CHECK(culprit.broken() == "I12 I12 ");  // of the node, and of the cluster
}

TEST_CASE("More devices out of service at once than a cap allows break I18, unless its own operator has released it") {
  Culprit culprit;
  auto& limits = culprit.policy.limits;
  std::string_view release;
  bool is_within = false;
  SUBCASE("caps.node") { limits.cap_node = {.percent = 0, .at_least = 2}; }
  SUBCASE("caps.cluster") { limits.cap_cluster = {.percent = 0, .at_least = 2}; }
  SUBCASE("caps.node, released on the node") {
    limits.cap_node = {.percent = 0, .at_least = 2};
    release = kCapReleaseAnnotation;
    is_within = true;
  }
  SUBCASE("caps.cluster, which an annotation of a node does not release") {
    limits.cap_cluster = {.percent = 0, .at_least = 2};
    release = kCapReleaseAnnotation;
  }
  culprit.send();
  for (int i = 0; i < 3; ++i) culprit.set(i, "Unhealthy");
  culprit.verdicts.resize(8);
  for (int i = 0; i < 8; ++i)
    culprit.verdicts[static_cast<std::size_t>(i)].subject.uid = culprit.uid(Culprit::name_of(i));
  culprit.evict_pod(0);
  culprit.evict_pod(1);
  culprit.live_for(minutes(3));
  CHECK(culprit.broken().empty());
  if (!release.empty()) culprit.annotate(release);
  culprit.evict_pod(2);
  culprit.live_for(minutes(3));
  CHECK(culprit.broken() == (is_within ? "" : "I18 "));
}

TEST_CASE("A brake is judged again after etcd was restored, of devices that were well then") {
  Culprit culprit;
  culprit.policy.limits.brake_at_least = 3;
  culprit.policy.policies.front().after = hours(10);  // nobody is asked why
  culprit.send();
  const auto backup = culprit.cluster.store().back_up();
  SUBCASE("they go bad later") {
    culprit.restore(backup);
    for (int i = 0; i < 4; ++i) culprit.set(i, "Unhealthy");
    culprit.evict_pod(0);
    CHECK(culprit.broken() == "I12 I12 ");
  }
  SUBCASE("they were bad before, and what was remembered of that may be older") {
    for (int i = 0; i < 4; ++i) culprit.set(i, "Unhealthy");
    culprit.restore(backup);
    culprit.evict_pod(0);
    CHECK(culprit.broken().empty());
  }
}

TEST_CASE("A node's brake that an operator has released is not judged, and the cluster's is") {
  Culprit culprit;
  culprit.policy.limits.brake_at_least = 3;
  culprit.policy.policies.front().after = hours(10);  // nobody is asked why
  culprit.send();
  for (int i = 0; i < 4; ++i) culprit.set(i, "Unhealthy");
  culprit.annotate(kBrakeReleaseAnnotation);
  culprit.live_for(Seconds(5));
  culprit.evict_pod(0);
  CHECK(culprit.broken() == "I12 ");
}

TEST_CASE("A new taint under a brake breaks I12") {
  SilentCulprit culprit;
  bool is_engaged = true;
  SUBCASE("engaged") { culprit.policy.limits.brake_at_least = 1; }
  SUBCASE("not engaged") { is_engaged = false; }
  culprit.policy.policies.front().after = hours(10);  // nobody is asked why
  culprit.send();
  culprit.taint("gpu.example.com/xid", "NoSchedule");
  taint::ApplyRule rule;
  rule.name = "dhc-1";
  rule.driver = kDriver;
  rule.pool = "node-b";
  rule.device_name = culprit.device;
  rule.effect = "NoSchedule";
  const sim::Json selector = {{"driver", kDriver}, {"pool", "node-b"}, {"device", culprit.device}};
  const sim::Json taint = {{"key", "device-health.io/unhealthy"}, {"value", "Unhealthy"}, {"effect", "NoSchedule"}};
  const auto answer =
      culprit.apply("/apis/resource.k8s.io/v1/devicetaintrules/dhc-1",
                    {{"metadata", {{"name", "dhc-1"}}}, {"spec", {{"deviceSelector", selector}, {"taint", taint}}}});
  REQUIRE(answer.status < 300);
  culprit.truth.after(rule, true, culprit.now);
  CHECK(culprit.broken() == (is_engaged ? "I12 " : ""));
}

TEST_CASE("A Job's retry for a device under a brake breaks I12") {
  Culprit culprit;
  culprit.policy.limits.brake_at_least = 3;
  culprit.policy.policies.front().after = hours(10);  // nobody is asked why
  culprit.send();
  sim::JobShape job;
  job.name = "train";
  culprit.cluster.create_job(job);
  culprit.live_for(Seconds(5));
  const auto before = culprit.object(sim::Res::Jobs, "train");
  job_retry::PatchJob patch;
  patch.ns = "default";
  patch.name = "train";
  patch.uid = sim::uid_of(before);
  patch.limit_before = sim::number(before, {"spec", "backoffLimit"});
  patch.limit = patch.limit_before + 1;
  patch.device = to_string(DeviceKey::plugin("node-a", kGpu, "GPU-0"));
  culprit.cluster.kubectl_patch(sim::Res::Jobs, "default", "train", {{"spec", {{"backoffLimit", patch.limit}}}});
  culprit.truth.after(patch, true, culprit.now);
  CHECK(culprit.broken().empty());
  for (int i = 0; i < 4; ++i) culprit.set(i, "Unhealthy");
  culprit.truth.after(patch, true, culprit.now);
  CHECK(culprit.broken() == "I12 ");
}
