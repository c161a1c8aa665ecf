#include "domain/cluster/resolution.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace dhc {

namespace {

using k8s::Health;

k8s::ResourceClaim claim_of(std::vector<std::string> devices, std::string owner_uid = "pod-uid") {
  k8s::ResourceClaim claim;
  claim.meta.ns = "ns";
  claim.meta.name = "claim";
  claim.meta.uid = "claim-uid";
  if (!owner_uid.empty())
    claim.meta.controller = k8s::OwnerRef{.api_version = "v1", .kind = "Pod", .name = "pod", .uid = owner_uid};
  claim.allocated = true;
  for (auto& device : devices) {
    claim.results.push_back({.request = "gpu", .driver = "d", .pool = "p", .device = std::move(device)});
  }
  return claim;
}

k8s::Pod pod_of(std::vector<k8s::AllocatedResource> allocated) {
  k8s::Pod pod;
  pod.meta.ns = "ns";
  pod.meta.name = "pod";
  pod.meta.uid = "pod-uid";
  pod.node_name = "node-a";
  pod.claims = {{"gpu", "claim"}};
  pod.allocated = std::move(allocated);
  return pod;
}

std::vector<HeldDevice> resolve(const k8s::Pod& pod, const k8s::ResourceClaim& claim) {
  return resolve_held_devices(pod,
                              [&](std::string_view ns, std::string_view name) {
                                return ns == "ns" && name == "claim" ? &claim : nullptr;
                              })
      .held_devices;
}

}  // namespace

TEST_CASE("A held device names the containers of all entries that report it, sorted") {
  const auto claim = claim_of({"gpu-3"});
  k8s::ReportedDevice one{"vendor.com/gpu=a", Health::Healthy, ""};
  one.containers = {"train"};
  k8s::ReportedDevice other{"vendor.com/gpu=a", Health::Unhealthy, ""};
  other.containers = {"main", "train"};
  const auto held_devices = resolve(pod_of({{"claim:gpu", {one}}, {"claim:gpu/gpu", {other}}}), claim);
  REQUIRE(held_devices.size() == 1);
  CHECK(held_devices[0].containers == dhc::SlimVector<dhc::SharedText>{"main", "train"});
}

TEST_CASE("One result for the request is the device, whatever the resource ID says") {
  const auto claim = claim_of({"gpu-3"});
  const auto held_devices =
      resolve(pod_of({{"claim:gpu", {{"vendor.com/gpu=anything", Health::Unhealthy, "Xid 79"}}}}), claim);
  REQUIRE(held_devices.size() == 1);
  CHECK(held_devices[0].key == DeviceKey::dra("d", "p", "gpu-3"));
  CHECK(!held_devices[0].inferred);
  CHECK(!held_devices[0].ambiguous);
  CHECK(!held_devices[0].shared);
  CHECK(held_devices[0].reported == Health::Unhealthy);
  CHECK(held_devices[0].message == "Xid 79");
  CHECK(held_devices[0].claim == "ns/claim");
}

TEST_CASE("An entry that names its request sees only that request's results, subrequests included") {
  auto claim = claim_of({"gpu-0", "nic-0"});
  claim.results[0].request = "gpu/big";
  claim.results[1].request = "nic";
  const auto held_devices = resolve(
      pod_of({{"claim:gpu/nic", {{"x=1", Health::Unhealthy, ""}}}, {"claim:gpu/gpu", {{"x=2", Health::Healthy, ""}}}}),
      claim);
  REQUIRE(held_devices.size() == 2);
  CHECK(held_devices[0].key.device == "gpu-0");
  CHECK(held_devices[0].reported == Health::Healthy);
  CHECK(held_devices[1].key.device == "nic-0");
  CHECK(held_devices[1].reported == Health::Unhealthy);
}

TEST_CASE("Several results are told apart by the name at the end of the resource ID, and marked inferred") {
  const auto claim = claim_of({"gpu-0", "gpu-1"});
  for (const std::string prefix : {"example.com/gpu=0f3c-", "vendor/x=", "d/p/"}) {
    const auto held_devices = resolve(
        pod_of({{"claim:gpu", {{prefix + "gpu-0", Health::Healthy, ""}, {prefix + "gpu-1", Health::Unhealthy, ""}}}}),
        claim);
    REQUIRE(held_devices.size() == 2);
    CHECK(held_devices[0].reported == Health::Healthy);
    CHECK(held_devices[1].reported == Health::Unhealthy);
    CHECK(held_devices[1].inferred == (prefix != "d/p/"));  // the whole of driver, pool and device is no guess
    CHECK(!held_devices[1].ambiguous);
  }
}

TEST_CASE("A resource ID that fits two devices, or two that fit one, is ambiguous and never tainted") {
  const auto two_fit = claim_of({"1", "gpu-1"});
  const auto fits_both = resolve(pod_of({{"claim:gpu", {{"x=a-gpu-1", Health::Unhealthy, ""}}}}), two_fit);
  REQUIRE(fits_both.size() == 3);
  CHECK(fits_both.back().ambiguous);
  CHECK(fits_both.back().candidates.size() == 2);
  const auto claim = claim_of({"gpu-0", "gpu-1"});
  const auto same =
      resolve(pod_of({{"claim:gpu", {{"a=gpu-0", Health::Unhealthy, ""}, {"b=gpu-0", Health::Healthy, ""}}}}), claim);
  CHECK(std::ranges::count_if(same, [](const HeldDevice& h) { return h.ambiguous; }) == 2);
  CHECK(std::ranges::none_of(same, [](const HeldDevice& h) { return h.inferred; }));
}

TEST_CASE("The worst report of a pod's containers counts") {
  const auto claim = claim_of({"gpu-0"});
  const auto held_devices = resolve(
      pod_of({{"claim:gpu", {{"a", Health::Healthy, ""}}}, {"claim:gpu/gpu", {{"b", Health::Unhealthy, "bad"}}}}),
      claim);
  REQUIRE(held_devices.size() == 1);
  CHECK(held_devices[0].reported == Health::Unhealthy);
  CHECK(held_devices[0].message == "bad");
}

TEST_CASE("A claim that the pod does not own is shared") {
  CHECK(resolve(pod_of({}), claim_of({"gpu-0"}, ""))[0].shared);
  CHECK(resolve(pod_of({}), claim_of({"gpu-0"}, "other-uid"))[0].shared);
}

TEST_CASE("A claim that no container names is held without a report, and admin access holds nothing") {
  auto claim = claim_of({"gpu-0", "gpu-1"});
  claim.results[1].admin_access = true;
  const auto held_devices = resolve(pod_of({}), claim);
  REQUIRE(held_devices.size() == 1);
  CHECK(held_devices[0].key.device == "gpu-0");
  CHECK(!held_devices[0].reported.has_value());
}

TEST_CASE("A claim that is not known yet gives no device, and a plugin device needs none") {
  auto pod =
      pod_of({{"claim:gpu", {{"x", Health::Unhealthy, ""}}}, {"example.com/gpu", {{"GPU-1", Health::Unhealthy, ""}}}});
  const auto resolved = resolve_held_devices(pod, [](std::string_view, std::string_view) { return nullptr; });
  const auto& held_devices = resolved.held_devices;
  CHECK(resolved.doubts.size() == 1);
  REQUIRE(held_devices.size() == 1);
  CHECK(held_devices[0].key == DeviceKey::plugin("node-a", "example.com/gpu", "GPU-1"));
}

}  // namespace dhc
