#include "tests/support/core/taint_world.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc::test {

using namespace dhc::sim;

namespace {

struct Place {
  std::string driver;
  std::string pool;
  std::string device;
};

Place place_of(const std::string& device) {
  const auto first = device.find('/');
  const auto last = device.rfind('/');
  REQUIRE(first < last);
  return {device.substr(0, first), device.substr(first + 1, last - first - 1), device.substr(last + 1)};
}

bool is_event(const RequestRecord& record) { return record.target.find("/events") != std::string::npos; }

}  // namespace

TaintWorld::TaintWorld(std::uint64_t seed) : Scenario(seed) {
  whole_policy().own_namespace = kOwnNamespace;
  policy().taint = TaintRules{};
  restart_controller();
  for (const auto* name : {"node-a", "node-b"}) cluster.add_node({name, {{kResource, 4}}, {{kDriver, 4}}, {}});
  run_for(Seconds(2));
}

PodShape TaintWorld::dra_pod() {
  PodShape shape;
  shape.device_class = kDriver;
  return shape;
}

PodShape TaintWorld::plugin_pod() {
  PodShape shape;
  shape.resource = kResource;
  return shape;
}

std::string TaintWorld::start_one() {
  cluster.create_stateful_set("default", "s", 1, dra_pod());
  run_for(Seconds(10));
  REQUIRE(pod("s-0")["status"]["phase"] == "Running");
  return device_of("s-0");
}

std::string TaintWorld::start_held() {
  policy().evict.reset();
  send_policy();
  const auto device = start_one();
  set_health(device, "Unhealthy", "Xid 79");
  return device;
}

std::string TaintWorld::start_tainted() {
  auto device = start_held();
  run_until_tainted(device);
  run_for(std::chrono::minutes(1));
  return device;
}

std::string TaintWorld::node_of(const std::string& name) const { return text(pod(name), {"spec", "nodeName"}); }

std::string TaintWorld::device_of(const std::string& name) const {
  return fmt::format("{}/{}/{}", kDriver, node_of(name), dra_device(name));
}

void TaintWorld::set_health(const std::string& device, std::string_view health, const std::string& message) {
  const auto place = place_of(device);
  cluster.set_device_health(place.pool, place.device, health, message);
}

Json TaintWorld::rule_for(const std::string& device) const {
  const auto place = place_of(device);
  for (const auto& [name, rule] : cluster.store().all(Res::TaintRules)) {
    const Json wanted = {{"driver", place.driver}, {"pool", place.pool}, {"device", place.device}};
    if (name.name.starts_with("dhc-") && (*rule)["spec"]["deviceSelector"] == wanted) return *rule;
  }
  return {};
}

std::string TaintWorld::effect_of(const std::string& device) const {
  return text(rule_for(device), {"spec", "taint", "effect"});
}

std::size_t TaintWorld::rule_count() const { return cluster.store().all(Res::TaintRules).size(); }

std::vector<std::string> TaintWorld::taints_of(const std::string& node) const {
  std::vector<std::string> taints;
  const auto object = cluster_object(Res::Nodes, node);
  for (const auto& taint : list(object, {"spec", "taints"})) {
    taints.push_back(text(taint, {"key"}) + ":" + text(taint, {"effect"}));
  }
  return taints;
}

bool TaintWorld::is_tainted(const std::string& node) const {
  const auto taints = taints_of(node);
  return std::ranges::find(taints, "device-health.io/unhealthy:NoSchedule") != taints.end();
}

std::vector<std::string> TaintWorld::steps() const {
  std::vector<std::string> steps;
  for (const auto& write : cluster.writes()) {
    const std::string verb = write.method == k8s::Method::Delete ? "DELETE" : "PATCH";
    if (write.target.find("/devicetaintrules/") != std::string::npos) steps.push_back(verb + " rule");
    if (write.target.find("/nodes/") != std::string::npos) steps.push_back(verb + " node");
    if (write.target.ends_with("/eviction")) steps.emplace_back("evict");
  }
  return steps;
}

std::size_t TaintWorld::write_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(cluster.requests(), [](const RequestRecord& record) {
    return record.method != k8s::Method::Get && !is_event(record);
  }));
}

bool TaintWorld::says(const std::string& device, const std::string& reason) const {
  const auto words = device_reasons(device);
  return std::ranges::find(words, reason) != words.end();
}

bool TaintWorld::says_of_pod(const std::string& name, const std::string& reason) const {
  const auto words = reasons(name);
  return std::ranges::find(words, reason) != words.end();
}

void TaintWorld::run_until_tainted(const std::string& device) {
  for (int i = 0; i < 600 && rule_for(device).is_null(); ++i) run_for(Seconds(1));
  REQUIRE_FALSE(rule_for(device).is_null());
}

Millis TaintWorld::run_until_untainted(const std::string& device, Millis limit) {
  const auto start = now.mono;
  while (now.mono - start < limit && !rule_for(device).is_null()) run_for(Seconds(1));
  return now.mono - start;
}

}  // namespace dhc::test
