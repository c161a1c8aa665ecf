#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/model/decoder.h"

namespace {

using namespace dhc::k8s;

constexpr auto kMetaJson = R"("metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7"})";

template <class Record>
Record read_as(Kind kind, const std::string& fields) {
  auto object = Decoder(kind).decode_object(fmt::format("{{{},{}}}", kMetaJson, fields));
  REQUIRE_MESSAGE(object.has_value(), object.error().why);
  return std::get<Record>(*object);
}

DeviceTaintRule read_rule(const std::string& selector) {
  return read_as<DeviceTaintRule>(
      Kind::DeviceTaintRule,
      fmt::format(R"("spec":{{"deviceSelector":{},"taint":{{"key":"k","effect":"NoSchedule"}}}})", selector));
}

ResourceSlice read_slice(const std::string& devices) {
  return read_as<ResourceSlice>(Kind::ResourceSlice,
                                fmt::format(R"("spec":{{"driver":"d","pool":{{"name":"p"}},"devices":{}}})", devices));
}

TEST_CASE("A rule that selects by class, by expression or by what we do not know is marked as such") {
  CHECK_FALSE(read_rule(R"({"driver":"d","pool":"p","device":"a"})").has_other_selectors);
  CHECK_FALSE(read_rule(R"({"driver":"d","deviceClassName":null,"selectors":null})").has_other_selectors);
  CHECK(read_rule(R"({"driver":"d","deviceClassName":"gpus"})").has_other_selectors);
  CHECK(read_rule(R"({"device":"a","selectors":[{"cel":{"expression":"false"}}]})").has_other_selectors);
  CHECK(read_rule(R"({"device":"a","notYetInvented":{}})").has_other_selectors);
  const auto rule = read_rule(R"({"driver":"d","pool":"p","device":"a","deviceClassName":"gpus"})");
  CHECK(rule.driver == "d");
  CHECK(rule.device == "a");
}

TEST_CASE("Of a rule's conditions only EvictionInProgress is read, and without one there is no progress") {
  const auto read = [](const std::string& conditions) {
    return read_as<DeviceTaintRule>(Kind::DeviceTaintRule, fmt::format(R"("status":{{"conditions":{}}})", conditions))
        .progress;
  };
  CHECK(read(R"([])") == std::nullopt);
  CHECK(read(R"([{"type":"Other","status":"True","observedGeneration":3}])") == std::nullopt);
  CHECK(read(R"([{"type":"Other","status":"True"},
                 {"type":"EvictionInProgress","status":"False","reason":"NoEffect","message":"1 pod","observedGeneration":3},
                 {"type":"Another","status":"True"}])") == EvictionInProgress{3, "False", "NoEffect", "1 pod"});
  CHECK(read(R"([{"type":"EvictionInProgress","status":"True"}])") == EvictionInProgress{0, "True", "", ""});
}

TEST_CASE("What an allocation tolerates is read, and an operator that is not known tolerates nothing") {
  const auto read = [](const std::string& tolerations) {
    return read_as<ResourceClaim>(
               Kind::ResourceClaim,
               fmt::format(
                   R"("status":{{"allocation":{{"devices":{{"results":[{{"request":"r","driver":"d","pool":"p",)"
                   R"("device":"a","tolerations":{}}}]}}}}}})",
                   tolerations))
        .results.at(0)
        .tolerations;
  };
  CHECK(read("null").empty());
  CHECK(read(R"([{"operator":"Exists"}])") ==
        std::vector<Toleration>{{.key = {}, .value = {}, .effect = {}, .exists = true}});
  CHECK(read(R"([{"key":"k","value":"v","effect":"NoExecute","tolerationSeconds":60},{"key":"k","operator":"Gt"}])") ==
        std::vector<Toleration>{{.key = "k", .value = "v", .effect = "NoExecute", .exists = false}});
}

TEST_CASE("A rule's generation is read wherever its metadata stands") {
  Decoder decoder(Kind::DeviceTaintRule);
  const auto read = decoder.decode_object(R"({"spec":{"deviceSelector":{"device":"a"}},"status":{"conditions":[]},)"
                                          R"("metadata":{"generation":4,"name":"n","uid":"u","resourceVersion":"7"}})");
  REQUIRE(read.has_value());
  CHECK(std::get<DeviceTaintRule>(*read).generation == 4);
  CHECK(std::get<DeviceTaintRule>(*read).device == "a");
  CHECK(read_rule("{}").generation == 0);
}

TEST_CASE("A slice of v1beta1 says the same as one of v1") {
  const std::string fields =
      R"("attributes":{"uuid":{"string":"GPU-1"}},"taints":[{"key":"k","value":"v","effect":"NoExecute"}],)"
      R"("consumesCounters":[{"counterSet":"gpu-0","counters":{"memory":{"value":"1Gi"}}}])";
  const auto now = read_slice(fmt::format(R"([{{"name":"a",{}}}])", fields));
  const auto then = read_slice(fmt::format(R"([{{"name":"a","basic":{{{}}}}}])", fields));
  CHECK(now.devices == std::vector<SliceDevice>{{"a", {{"k", "v", "NoExecute"}}, {{"uuid", "GPU-1"}}, "gpu-0"}});
  CHECK(then == now);
}

TEST_CASE("A device that draws on several sets of counters is of none of them") {
  const auto slice = read_slice(R"([{"name":"a","consumesCounters":[{"counterSet":"x"},{"counterSet":"y"}]},
      {"name":"b","consumesCounters":[]},{"name":"c"}])");
  for (const auto& device : slice.devices) CHECK(device.counter_set.empty());
  CHECK(slice.devices.size() == 3);
}

TEST_CASE("Of a device's attributes those with text are read, sorted by name") {
  const auto slice = read_slice(R"([{"name":"a","attributes":{
      "uuid":{"string":"GPU-1"},"cores":{"int":8},"driverVersion":{"version":"1.2.3"},"ecc":{"bool":true},
      "resource.kubernetes.io/pcieRoot":{"string":"pci0000:01"},"architecture":{"string":"Hopper"},"empty":{}}}])");
  CHECK(slice.devices.at(0).attributes ==
        StringMap{{"architecture", "Hopper"}, {"resource.kubernetes.io/pcieRoot", "pci0000:01"}, {"uuid", "GPU-1"}});
}

TEST_CASE("An attribute with control characters is left out, and its device is not lost for it") {
  const auto slice = read_slice(R"([{"name":"a","attributes":{"bad":{"string":"x\ny"},"uuid":{"string":"GPU-1"}}}])");
  CHECK(slice.devices.at(0).attributes == StringMap{{"uuid", "GPU-1"}});
}

TEST_CASE("A node's taints keep the order in which the API has them") {
  const auto node = read_as<Node>(Kind::Node, R"("spec":{"taints":[
      {"key":"z","effect":"NoSchedule"},{"key":"device-health.io/unhealthy","value":"v","effect":"NoSchedule"},
      {"key":"a","effect":"NoExecute","timeAdded":"2026-11-20T18:23:16Z"},{"key":"z","effect":"NoExecute"},
      {"key":"m","effect":"NotYetInvented"}]})");
  CHECK(node.taints == std::vector<Taint>{{"z", "", "NoSchedule"},
                                          {"device-health.io/unhealthy", "v", "NoSchedule"},
                                          {"a", "", "NoExecute"},
                                          {"z", "", "NoExecute"},
                                          {"m", "", "None"}});
}

}  // namespace
