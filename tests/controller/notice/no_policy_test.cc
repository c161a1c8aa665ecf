#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/contract/verdict.h"
#include "tests/controller/cluster/driver_taint_stage.h"
#include "tests/support/core/stage.h"

using namespace dhc;
using k8s::Health;

namespace {

const std::string kWords = "critical XID 79 reported by NVML";

/// A pod on a bad DRA device, and a policy that fits but for what `change` does to it.
template <class Change>
test::Stage stage_with(Change change) {
  test::Stage stage;
  stage.node("node-a", 4);
  stage.slice("node-a", {"gpu-0", "gpu-1"});
  stage.claim("train-gpu", {"gpu-0"}, "train");
  stage.pod({.name = "train", .health = Health::Unhealthy, .message = kWords, .claim = "train-gpu"});
  change(stage, stage.policy());
  stage.send_policy();
  stage.settle();
  return stage;
}

/// The sentence of the only NoPolicy verdict; empty if there is none.
std::string sentence(const test::Stage& stage) {
  std::string found;
  for (const auto& verdict : stage.verdicts()) {
    if (to_string(verdict.reason) != "NoPolicy") continue;
    CHECK(found.empty());
    found = verdict.message;
  }
  return found;
}

const std::string kNearest = "no policy matches this Unhealthy device; the nearest is p, but ";

}  // namespace

TEST_CASE("An Unhealthy device whose words no policy matches is a verdict with the nearest policy and its expression") {
  auto stage = stage_with([](test::Stage&, DevicePolicy& policy) {
    policy.match.message = MessagePattern::compile("Xid (48|79|95)").value();
  });
  REQUIRE(stage.reasons("train") == "NoPolicy");
  const auto& verdict = stage.verdicts().front();
  CHECK(verdict.device == "gpu.example.com/node-a/gpu-0");
  CHECK(verdict.policy == "p");
  CHECK(verdict.message == kNearest + "its message /Xid (48|79|95)/ does not match \"" + kWords + "\"");
  CHECK(verdict.since == stage.now().wall);
  CHECK_FALSE(verdict.next_at);
  stage.run_for(std::chrono::minutes(5), Seconds(10));
  CHECK(stage.reasons("train") == "NoPolicy");
  CHECK(stage.events().empty());
  CHECK(stage.conditions().empty());
}

TEST_CASE("NoPolicy ends when a policy matches, when the device recovers, and when the pod goes") {
  const auto unmatched = [](test::Stage&, DevicePolicy& policy) {
    policy.match.message = MessagePattern::compile("Xid").value();
  };
  auto matched = stage_with(unmatched);
  matched.policy().match.message = MessagePattern::compile("(?i)Xid").value();
  matched.send_policy();
  matched.settle();
  CHECK(matched.reasons("train") == "WaitingForWindow");
  auto said_anew = stage_with(unmatched);
  said_anew.report("train", Health::Unhealthy, "Xid 79");
  said_anew.settle();
  CHECK(said_anew.reasons("train") == "WaitingForWindow");
  auto recovered = stage_with(unmatched);
  recovered.report("train", Health::Healthy);
  recovered.settle();
  CHECK(recovered.verdicts().empty());
  auto gone = stage_with(unmatched);
  gone.remove_pod("train");
  gone.settle();
  CHECK(gone.verdicts().empty());
  // Unknown keeps what was said, as it keeps an incident.
  auto unknown = stage_with(unmatched);
  unknown.report("train", Health::Unknown);
  unknown.settle();
  CHECK(unknown.reasons("train") == "NoPolicy");
}

TEST_CASE("NoPolicy names the selector that failed, whichever it was") {
  using Requirement = LabelSelector::Requirement;
  using enum LabelSelector::Operator;
  CHECK(sentence(stage_with([](test::Stage&, DevicePolicy& policy) {
          policy.match.namespaces.requirements = {Requirement{"team", In, {"a", "b"}}};
        })) == kNearest + "its namespaceSelector asks for team in (a, b), and Namespace default has no such label");
  CHECK(sentence(stage_with([](test::Stage& stage, DevicePolicy& policy) {
          policy.match.pods.requirements = {Requirement{"app", Exists, {}}, Requirement{"tier", NotIn, {"gold"}}};
          stage.pod_named("train").meta.labels = {{"app", "x"}, {"tier", "gold"}};
          stage.upsert_pod("train");
        })) == kNearest + "its podSelector asks for tier notin (gold), and the pod has tier=gold");
  CHECK(sentence(stage_with([](test::Stage&, DevicePolicy& policy) {
          policy.match.nodes.requirements = {Requirement{"rack", Exists, {}}};
        })) == kNearest + "its nodeSelector asks for rack, and node node-a has no such label");
  CHECK(sentence(stage_with([](test::Stage&, DevicePolicy& policy) { policy.match.health = {Health::Unknown}; })) ==
        kNearest + "its health is [Unknown]");
  CHECK(sentence(stage_with([](test::Stage&, DevicePolicy& policy) {
          policy.match.health = {};
          policy.match.claim_conditions = {{"Ready", "False"}};
        })) == kNearest + "its health is [], and no claim condition that it names is set");
  CHECK(sentence(stage_with([](test::Stage&, DevicePolicy& policy) { policy.match.drivers = {"gpu.nvidia.com"}; })) ==
        "no policy matches this Unhealthy device: none names the driver gpu.example.com");
  CHECK(sentence(stage_with([](test::Stage& stage, DevicePolicy&) { stage.whole_policy().policies.clear(); })) ==
        "no policy matches this Unhealthy device: there is no policy");
}

TEST_CASE("The nearest policy is the one that gets furthest, and of two the one that is asked first") {
  auto stage = stage_with([](test::Stage& s, DevicePolicy&) {
    auto& policies = s.whole_policy().policies;
    policies.front().match.drivers = {"gpu.nvidia.com"};
    for (const auto* name : {"by-pod", "by-words", "by-words-too"}) {
      auto policy = policies.front();
      policy.name = name;
      policy.match = Match{};
      if (policy.name == "by-pod") {
        policy.match.pods.requirements = {{"app", LabelSelector::Operator::Exists, {}}};
      } else {
        policy.match.message = MessagePattern::compile("ECC").value();
      }
      policies.push_back(policy);
    }
  });
  CHECK(
      sentence(stage).starts_with("no policy matches this Unhealthy device; the nearest is by-words, but its message"));
}

TEST_CASE("A device plugin's device is told that a plugin sends no message") {
  test::Stage stage;
  stage.policy().match.message = MessagePattern::compile("(?i)xid").value();
  stage.send_policy();
  stage.node("node-a", 4, 3);
  stage.pod({.name = "web", .device = "gpu-0", .health = Health::Unhealthy});
  stage.settle();
  CHECK(sentence(stage) == kNearest + "its message /(?i)xid/ does not match \"\": a device plugin sends no message");
  stage.policy().match = Match{};
  stage.policy().match.resources = {"nvidia.com/gpu"};
  stage.send_policy();
  stage.settle();
  CHECK(sentence(stage) == "no policy matches this Unhealthy device: none names the resource example.com/gpu");
}

TEST_CASE("A policy with mode off is a policy, and a device that is not Unhealthy needs none") {
  const auto off = stage_with([](test::Stage&, DevicePolicy& policy) { policy.mode = Mode::Off; });
  CHECK(off.verdicts().empty());
  const auto unknown = stage_with([](test::Stage& stage, DevicePolicy& policy) {
    policy.match.drivers = {"gpu.nvidia.com"};
    stage.report("train", Health::Unknown);
  });
  CHECK(unknown.verdicts().empty());
}

TEST_CASE("A device that its driver has tainted under a pod, and whose taint no policy names, is a verdict") {
  const auto tainted = [](auto change) {
    test::Stage stage;
    stage.node("node-a", 0);
    test::publish_taints(stage, {});
    test::hold_device(stage);
    change(stage);
    stage.send_policy();
    stage.settle();
    CHECK(stage.verdicts().empty());
    test::publish_taints(stage, {.first = {test::xid("79")}});
    stage.settle();
    return stage;
  };
  const std::string words =
      "the driver has tainted this device (gpu.example.com/xid=79:NoSchedule), and no policy "
      "matches it";
  auto stage = tainted([](test::Stage&) {});
  CHECK(stage.reasons("train-1") == "NoPolicy");
  CHECK(sentence(stage) == words + "; the nearest is p, but it has no deviceTaints");
  CHECK(stage.verdicts().front().since == stage.now().wall);
  CHECK(stage.events().empty());
  SUBCASE("until the driver takes it back") {
    test::publish_taints(stage, {});
    stage.settle();
    CHECK(sentence(stage).empty());
  }
  SUBCASE("while the driver publishes nothing nothing is said") {
    stage.deliver(k8s::Remove{.kind = k8s::Kind::ResourceSlice, .ns = {}, .name = "slice", .uid = "uid-slice"});
    stage.settle();
    CHECK(sentence(stage).empty());
  }
  SUBCASE("until the pod goes") {
    stage.remove_pod("train-1");
    stage.settle();
    CHECK(sentence(stage).empty());
  }
  SUBCASE("until a policy names it") {
    stage.policy().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    stage.send_policy();
    stage.settle();
    CHECK(stage.reasons("train-1") == "WaitingForWindow");
  }
  SUBCASE("until a label of its node makes a policy match that names it") {
    stage.policy().match.device_taints = {{.key = "gpu.example.com/*", .effect = {}}};
    stage.policy().match.nodes.requirements = {{"rack", LabelSelector::Operator::Exists, {}}};
    stage.send_policy();
    stage.report("train-1", Health::Healthy);
    stage.settle();
    CHECK(stage.reasons("train-1") == "NoPolicy");
    auto node = stage.node_named("node-a");
    node.meta.labels = {{"rack", "7"}};
    stage.put(node);
    stage.settle();
    CHECK(stage.reasons("train-1") == "WaitingForWindow");
  }
  SUBCASE("and once the device is Unhealthy, that is what is said") {
    stage.policy().match.message = MessagePattern::compile("Xid").value();
    stage.send_policy();
    stage.report("train-1", Health::Unhealthy, kWords);
    stage.settle();
    CHECK(sentence(stage).starts_with(kNearest));
  }
  CHECK(sentence(tainted([](test::Stage& other) {
          other.policy().match.device_taints = {{.key = "other.example.com/*", .effect = {}}};
        })) == words + "; the nearest is p, but its deviceTaints do not name it");
  CHECK(sentence(tainted([](test::Stage& other) { other.policy().match.drivers = {"gpu.nvidia.com"}; })) ==
        words + ": none names the driver gpu.example.com");
  CHECK(sentence(tainted([](test::Stage& other) { other.policy().mode = Mode::Off; })).empty());
  stage = tainted([](test::Stage&) {});
  test::publish_taints(stage, {.first = {test::xid("43", "None")}});
  stage.settle();
  CHECK(sentence(stage).empty());
}

TEST_CASE("A driver's hostile words make one line of bounded length") {
  const auto said = stage_with([](test::Stage& stage, DevicePolicy& policy) {
    policy.match.message = MessagePattern::compile(std::string(1000, 'a')).value();
    stage.report("train", Health::Unhealthy, "Xid\n\x1b[31m" + std::string(100'000, 'x'));
  });
  CHECK(sentence(said).size() < 600);
  CHECK(sentence(said).find_first_of("\n\x1b") == std::string::npos);
}

TEST_CASE("A thousand unmatched devices are five hundred verdicts, and one with the number of the rest") {
  test::Stage stage;
  stage.policy().match.resources = {"nvidia.com/gpu"};
  stage.send_policy();
  stage.node("node-a", 1000, 0);
  for (int i = 0; i < 1000; ++i) {
    stage.pod({.name = fmt::format("p-{}", i), .device = fmt::format("gpu-{}", i), .health = Health::Unhealthy});
  }
  stage.settle();
  std::size_t count = 0;
  std::string rest;
  for (const auto& verdict : stage.verdicts()) {
    if (to_string(verdict.reason) != "NoPolicy") continue;
    ++count;
    if (verdict.subject.kind == "Configuration") rest = verdict.message;
  }
  CHECK(count == 501);
  CHECK(rest == "500 more pods hold a bad device that no policy matches; 500 are shown");
}
