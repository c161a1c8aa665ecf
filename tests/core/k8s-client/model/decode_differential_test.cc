#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "k8s-client/model/decoder.h"
#include "tests/core/k8s-client/model/kept.h"
#include "tests/support/core/fixtures.h"

// The same objects read a second time, through a whole DOM of another library and in as few words as possible.

namespace {

using namespace dhc::k8s;
using dhc::test::read_fixture;
using dhc::test::read_fixture_lines;
using nlohmann::json;

std::string text(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? std::string() : at->get<std::string>();
}

std::optional<dhc::WallTime> time(const json& object, const char* key) { return dhc::parse_rfc3339(text(object, key)); }

json part(const json& object, const char* key) {
  return object.contains(key) && !object[key].is_null() ? object[key] : json();
}

Meta dom_meta(const json& object) {
  const auto& from = object.at("metadata");
  Meta meta;
  meta.ns = text(from, "namespace");
  meta.name = text(from, "name");
  meta.uid = text(from, "uid");
  meta.resource_version = text(from, "resourceVersion");
  meta.creation = time(from, "creationTimestamp");
  meta.deletion = time(from, "deletionTimestamp");
  if (from.contains("deletionGracePeriodSeconds"))
    meta.deletion_grace_seconds = from["deletionGracePeriodSeconds"].get<std::int64_t>();
  const auto labels = part(from, "labels");
  const auto annotations = part(from, "annotations");
  for (const auto& [key, value] : labels.items()) meta.labels.emplace_back(key, value.get<std::string>());
  for (const auto& [key, value] : annotations.items()) {
    meta.has_annotations = true;
    if (key.starts_with("device-health.io/") || key.starts_with("batch.kubernetes.io/job-"))
      meta.annotations.emplace_back(key, value.get<std::string>());
  }
  for (const auto& owner : part(from, "ownerReferences")) {
    if (owner.value("controller", false)) {
      meta.controller =
          OwnerRef{text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"), text(owner, "uid")};
    } else {
      meta.has_other_owner = true;
    }
  }
  return meta;
}

Condition dom_condition(const json& from) {
  return {text(from, "type"), text(from, "status"), text(from, "reason"), text(from, "message"),
          time(from, "lastTransitionTime")};
}

std::vector<ResourceAmount> dom_amounts(const json& from) {
  std::vector<ResourceAmount> amounts;
  for (const auto& [key, value] : from.items()) {
    if (key.starts_with("example.com/")) amounts.push_back({key, std::stoll(value.get<std::string>())});
  }
  return amounts;
}

std::vector<AllocatedResource> dom_allocated(const json& status) {
  std::map<std::string, std::map<std::string, ReportedDevice>> found;
  for (const auto& container : part(status, "containerStatuses")) {
    for (const auto& entry : part(container, "allocatedResourcesStatus")) {
      auto& devices = found[text(entry, "name")];
      for (const auto& device : part(entry, "resources")) {
        const auto health = text(device, "health");
        devices[text(device, "resourceID")] = {text(device, "resourceID"),
                                               health == "Healthy"     ? Health::Healthy
                                               : health == "Unhealthy" ? Health::Unhealthy
                                                                       : Health::Unknown,
                                               text(device, "message"),
                                               "",
                                               {text(container, "name")},
                                               container.value("restartCount", std::int64_t(0))};
      }
    }
  }
  std::vector<AllocatedResource> allocated;
  for (const auto& [name, devices] : found) {
    auto& entry = allocated.emplace_back(AllocatedResource{name, {}});
    for (const auto& [id, device] : devices) entry.devices.push_back(device);
  }
  return allocated;
}

Pod dom_pod(const json& object) {
  const auto& spec = object.at("spec");
  const auto& status = object.at("status");
  Pod pod;
  pod.meta = dom_meta(object);
  pod.node_name = text(spec, "nodeName");
  const std::map<std::string, PodPhase> phases = {{"Pending", PodPhase::Pending},
                                                  {"Running", PodPhase::Running},
                                                  {"Succeeded", PodPhase::Succeeded},
                                                  {"Failed", PodPhase::Failed}};
  pod.phase = phases.at(text(status, "phase"));
  pod.status_reason = text(status, "reason");
  pod.grace_period_seconds = spec.at("terminationGracePeriodSeconds").get<std::int64_t>();
  REQUIRE(spec.at("containers").size() == 1);
  pod.requests = dom_amounts(part(part(spec["containers"][0], "resources"), "limits"));
  for (const auto& claim : part(spec, "resourceClaims")) {
    pod.claims.push_back({text(claim, "name"), text(claim, "resourceClaimName")});
    for (const auto& made : part(status, "resourceClaimStatuses")) {
      if (made["name"] == claim["name"]) pod.claims.back().claim_name = text(made, "resourceClaimName");
    }
  }
  pod.allocated = dom_allocated(status);
  const auto& container = spec["containers"][0];
  if (!pod.requests.empty() || !part(part(container, "resources"), "claims").is_null()) {
    pod.images = std::vector<ContainerImage>{{.container = container["name"], .image = container["image"]}};
  }
  for (const auto& said : part(status, "containerStatuses")) {
    const auto ended = part(part(said, "state"), "terminated");
    if (ended.is_object() && ended["exitCode"] != 0)
      pod.exits.push_back({said["name"].get<std::string>(), ended["exitCode"]});
    const bool is_failed_job =
        pod.phase == PodPhase::Failed && pod.meta.controller && pod.meta.controller->kind == "Job";
    if (is_failed_job && ended.is_object()) pod.last_start = time(ended, "finishedAt");
  }
  for (const auto& condition : part(status, "conditions")) {
    const auto type = text(condition, "type");
    const bool is_kept = type.starts_with(kKept.prefix);
    pod.has_kept_condition = pod.has_kept_condition || is_kept;
    if (is_kept || type == "DisruptionTarget") {
      pod.conditions.push_back(dom_condition(condition));
    } else if (pod.meta.controller && pod.meta.controller->kind == "Job") {
      pod.conditions.push_back({.type = type, .status = text(condition, "status")});
    }
  }
  if (pod.status_reason == "UnexpectedAdmissionError") pod.status_message = text(status, "message");
  SchedulingTerms scheduling;
  const auto node_selector = part(spec, "nodeSelector");
  for (const auto& [key, value] : node_selector.items())
    scheduling.node_selector.emplace_back(key, value.get<std::string>());
  for (const auto& toleration : part(spec, "tolerations")) {
    const auto key = text(toleration, "key");
    const bool everybodys = key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable";
    if (everybodys) continue;
    scheduling.tolerations.push_back({.key = key,
                                      .value = text(toleration, "value"),
                                      .effect = text(toleration, "effect"),
                                      .exists = text(toleration, "operator") == "Exists"});
  }
  REQUIRE(part(spec, "affinity").is_null());
  pod.scheduling = Shared(std::move(scheduling));
  return pod;
}

ResourceClaim dom_claim(const json& object) {
  ResourceClaim claim;
  claim.meta = dom_meta(object);
  std::vector<DeviceRequest> requests;
  for (const auto& request : part(part(object["spec"], "devices"), "requests")) {
    const auto exactly = part(request, "exactly");
    requests.push_back({.name = text(request, "name"),
                        .device_class = text(exactly, "deviceClassName"),
                        .count = exactly.value("count", 1)});
  }
  claim.requests = Shared(std::move(requests));
  const auto status = part(object, "status");
  claim.allocated = !part(status, "allocation").is_null();
  for (const auto& result : part(part(part(status, "allocation"), "devices"), "results")) {
    claim.results.push_back(
        {text(result, "request"), text(result, "driver"), text(result, "pool"), text(result, "device"), false, {}});
  }
  for (const auto& user : part(status, "reservedFor")) {
    claim.reserved_for.push_back(
        {text(user, "apiGroup"), text(user, "resource"), text(user, "name"), text(user, "uid")});
  }
  for (const auto& device : part(status, "devices")) {
    auto& entry = claim.devices.emplace_back(
        ClaimDeviceStatus{text(device, "driver"), text(device, "pool"), text(device, "device"), {}});
    for (const auto& condition : part(device, "conditions")) entry.conditions.push_back(dom_condition(condition));
  }
  return claim;
}

Node dom_node(const json& object) {
  Node node;
  node.meta = dom_meta(object);
  const auto& status = object.at("status");
  node.unschedulable = object.at("spec").value("unschedulable", false);
  for (const auto& taint : part(object["spec"], "taints"))
    node.taints.push_back({text(taint, "key"), text(taint, "value"), text(taint, "effect")});
  for (const auto& condition : part(status, "conditions")) {
    if (condition["type"] == "Ready") node.ready = condition["status"] == "True";
  }
  for (const std::string type : {"MaintenancePlanned", "Drained", "DrainInProgress", "MaintenanceInProgress",
                                 "GracefulNodeShutdownInProgress"}) {
    for (const auto& condition : part(status, "conditions"))
      if (condition["type"] == type && condition["status"] == "True") node.lifecycle = type;
  }
  node.boot_id = text(part(status, "nodeInfo"), "bootID");
  node.kubelet_version = text(part(status, "nodeInfo"), "kubeletVersion");
  node.capacity = dom_amounts(part(status, "capacity"));
  node.allocatable = dom_amounts(part(status, "allocatable"));
  return node;
}

ResourceSlice dom_slice(const json& object) {
  const auto& spec = object.at("spec");
  ResourceSlice slice{dom_meta(object),
                      spec["driver"].get<std::string>(),
                      spec["pool"]["name"].get<std::string>(),
                      spec["pool"]["generation"],
                      text(spec, "nodeName"),
                      {},
                      spec["pool"]["resourceSliceCount"]};
  for (const auto& device : part(spec, "devices")) {
    auto& read = slice.devices.emplace_back(SliceDevice{device["name"].get<std::string>(), {}});
    const auto attributes = part(device, "attributes");
    for (const auto& [name, value] : attributes.items()) {
      if (value.contains("string")) read.attributes.emplace_back(name, value["string"].get<std::string>());
    }
    const auto counters = part(device, "consumesCounters");
    if (counters.size() == 1) read.counter_set = counters[0]["counterSet"];
  }
  return slice;
}

Job dom_job(const json& object) {
  const auto& spec = object.at("spec");
  const auto status = part(object, "status");
  Job job;
  job.meta = dom_meta(object);
  job.meta.labels.clear();
  for (const auto& condition : part(status, "conditions")) job.conditions.push_back(dom_condition(condition));
  if (is_finished(job)) {
    for (auto& condition : job.conditions) condition.message.clear();
    job.managed_by = text(spec, "managedBy");
    return job;
  }
  job.backoff_limit = spec.at("backoffLimit");
  if (spec.contains("backoffLimitPerIndex")) job.backoff_limit_per_index = spec["backoffLimitPerIndex"];
  if (spec.contains("completions")) job.completions = spec["completions"];
  job.parallelism = spec.at("parallelism");
  job.indexed = text(spec, "completionMode") == "Indexed";
  job.suspended = spec.value("suspend", false);
  job.manual_selector = spec.value("manualSelector", false);
  job.replaces_when_failed = text(spec, "podReplacementPolicy") == "Failed";
  job.restarts_on_failure = text(spec["template"]["spec"], "restartPolicy") == "OnFailure";
  for (const auto& rule : part(part(spec, "podFailurePolicy"), "rules")) {
    auto& read = job.failure_rules.emplace_back();
    REQUIRE(text(rule, "action") == "Ignore");
    read.action = JobFailureRule::Action::Ignore;
    for (const auto& wanted : part(rule, "onPodConditions"))
      read.on_pod_conditions.push_back({text(wanted, "type"), text(wanted, "status")});
  }
  job.failed = status.value("failed", 0);
  job.succeeded = status.value("succeeded", 0);
  job.active = status.value("active", 0);
  job.terminating = status.value("terminating", 0);
  const auto uncounted = part(status, "uncountedTerminatedPods");
  job.uncounted = static_cast<std::int64_t>(part(uncounted, "failed").size() + part(uncounted, "succeeded").size());
  return job;
}

Object dom_object(Kind kind, const json& object) {
  if (kind == Kind::Pod) return dom_pod(object);
  if (kind == Kind::ResourceClaim) return dom_claim(object);
  if (kind == Kind::Node) return dom_node(object);
  if (kind == Kind::ResourceSlice) return dom_slice(object);
  return dom_job(object);
}

struct Recording {
  Kind kind;
  const char* file;
};

TEST_CASE("A DOM of another library reads the same from every recorded list") {
  for (const auto& [kind, file] : std::vector<Recording>{{Kind::Pod, "pods"},
                                                         {Kind::Pod, "pods-after-dra"},
                                                         {Kind::Pod, "pods-limit1"},
                                                         {Kind::ResourceClaim, "claims"},
                                                         {Kind::ResourceClaim, "claims-after-dra"},
                                                         {Kind::Node, "nodes"},
                                                         {Kind::ResourceSlice, "slices"},
                                                         {Kind::Job, "jobs"}}) {
    CAPTURE(file);
    const auto body = read_fixture(std::string("recordings/list/") + file + ".json");
    const auto page = Decoder(kind, kKept).decode_list(body);
    const auto dom = json::parse(body);
    REQUIRE(page.has_value());
    CHECK(page->resource_version == text(dom["metadata"], "resourceVersion"));
    CHECK(page->continue_token == text(dom["metadata"], "continue"));
    REQUIRE(page->objects.size() == dom["items"].size());
    for (std::size_t i = 0; i < page->objects.size(); ++i) CHECK(page->objects[i] == dom_object(kind, dom["items"][i]));
  }
}

TEST_CASE("A DOM of another library reads the same from objects that kubectl printed, of which the List is no page") {
  for (const auto& [kind, file] : std::vector<Recording>{{Kind::Pod, "pods-after"}, {Kind::Job, "jobs-after"}}) {
    Decoder decoder(kind, kKept);
    const auto body = read_fixture(std::string("recordings/list/") + file + ".json");
    CHECK_FALSE(decoder.decode_list(body).has_value());
    const auto dom = json::parse(body);
    for (const auto& item : dom["items"]) {
      const auto read = decoder.decode_object(item.dump(2));
      REQUIRE(read.has_value());
      CHECK(*read == dom_object(kind, item));
    }
  }
}

TEST_CASE("A DOM of another library reads the same from every recorded event") {
  for (const auto& [kind, file] : std::vector<Recording>{{Kind::Pod, "pods-watchlist"},
                                                         {Kind::Pod, "pods-driver-dies"},
                                                         {Kind::ResourceClaim, "claims-watchlist"},
                                                         {Kind::Node, "nodes-watchlist"},
                                                         {Kind::ResourceSlice, "slices-watchlist"},
                                                         {Kind::Job, "jobs-watchlist"}}) {
    Decoder decoder(kind, kKept);
    for (const auto& line : read_fixture_lines(std::string("recordings/watch/") + file + ".ndjson")) {
      const auto event = decoder.decode_event(line);
      const auto dom = json::parse(line);
      const auto& object = dom["object"];
      CAPTURE(text(object["metadata"], "name"));
      CHECK(event.resource_version == text(object["metadata"], "resourceVersion"));
      if (dom["type"] == "BOOKMARK") {
        CHECK(std::holds_alternative<Bookmark>(event.what));
      } else if (dom["type"] == "DELETED") {
        const auto meta = dom_meta(object);
        CHECK(std::get<Deleted>(event.what) == Deleted{meta.ns, meta.name, meta.uid});
      } else {
        CHECK(std::get<Changed>(event.what).object == dom_object(kind, object));
      }
    }
  }
}

}  // namespace
