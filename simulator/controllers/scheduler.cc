#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/controllers/state.h"

namespace dhc::sim {
namespace {

/// What allocating one claim would write.
struct Allocation {
  Name claim;
  Json results;  ///< Null: the claim is allocated already, only the reservation is added.
};

/// Why the node does not take the pod for reasons of its own; empty if it does.
std::string node_refuses(const Json& node, const Json& pod) {
  if (condition_status(node, "Ready") != "True") return "node(s) were not ready";
  if (node["spec"].value("unschedulable", false)) return "node(s) were unschedulable";
  if (const Json* taint = untolerated_taint(node, pod["spec"], false); taint != nullptr) {
    return fmt::format("node(s) had untolerated taint(s) {{{}: {}}}", text(*taint, {"key"}), text(*taint, {"value"}));
  }
  if (const Json* selector = field(pod, {"spec", "nodeSelector"}); selector != nullptr) {
    for (const auto& [key, value] : selector->items()) {
      const Json* label = field(node, {"metadata", "labels", key});
      if (label == nullptr || *label != value) return "node(s) didn't match Pod's node affinity/selector";
    }
  }
  return {};
}

}  // namespace

std::string short_of(const State& state, const Json& node, const Json& pod) {
  for (const auto& [resource, wanted] : extended_requests(pod)) {
    std::int64_t used = 0;
    for (const auto& other : pods_named(state.store, state.index.pods_on(name_of(node)))) {
      if (is_terminal(*other)) continue;
      const auto requests = extended_requests(*other);
      if (const auto it = requests.find(resource); it != requests.end()) used += it->second;
    }
    if (used + wanted > number(node, {"status", "allocatable", resource})) return "Insufficient " + resource;
  }
  return {};
}

namespace {

bool keeps_pods_off(const std::vector<DeviceTaint>& taints) {
  return std::ranges::any_of(
      taints, [](const DeviceTaint& taint) { return taint.effect == "NoSchedule" || taint.effect == "NoExecute"; });
}

/// First fit over the node's slices: a device that was freed is given again, however it is. **Source:** seen on 1.37.1.
std::optional<Json> pick_devices(const State& state, const Json& claim, const std::string& node,
                                 std::set<std::string>& used) {
  Json results = Json::array();
  for (const auto& request : list(claim, {"spec", "devices", "requests"})) {
    auto missing = number(request, {"exactly", "count"}, 1);
    const auto device_class = text(request, {"exactly", "deviceClassName"});
    for (const auto& slice_name : state.index.slices_of(node)) {
      const auto slice = state.store.get(Res::Slices, slice_name);
      const auto driver = text(*slice, {"spec", "driver"});
      if (driver != device_class) continue;
      const auto pool = text(*slice, {"spec", "pool", "name"});
      for (const auto& device : list(*slice, {"spec", "devices"})) {
        const auto device_name = text(device, {"name"});
        const auto key = driver + "/" + pool + "/" + device_name;
        if (missing == 0 || used.contains(key) || !state.index.claims_on(key).empty()) continue;
        if (keeps_pods_off(state.taints.of(driver, pool, device_name))) continue;
        used.insert(key);
        --missing;
        results.push_back(
            {{"request", text(request, {"name"})}, {"driver", driver}, {"pool", pool}, {"device", device_name}});
      }
    }
    if (missing > 0) return std::nullopt;
  }
  return results;
}

bool is_on_node(const Json& claim, const std::string& node) {
  const auto terms = list(claim, {"status", "allocation", "nodeSelector", "nodeSelectorTerms"});
  if (terms.empty()) return true;
  for (const auto& wanted : list(terms[0], {"matchFields"})) {
    const auto values = list(wanted, {"values"});
    if (std::ranges::find(values, Json(node)) == values.end()) return false;
  }
  return true;
}

std::optional<std::vector<Allocation>> allocate(const State& state, const Json& pod, const std::string& node) {
  std::set<std::string> used;  // by this pod's claims
  std::vector<Allocation> allocations;
  for (const auto& pod_claim : list(pod, {"spec", "resourceClaims"})) {
    const Name name{ns_of(pod), claim_name_of(pod, pod_claim)};
    const auto claim = state.store.get(Res::Claims, name);
    if (claim == nullptr) return std::nullopt;
    if (field(*claim, {"status", "allocation"}) != nullptr) {
      // An allocated claim decides the device, whatever its taints say by now. **Source:** seen on 1.37.1.
      if (!is_on_node(*claim, node)) return std::nullopt;
      allocations.push_back({name, Json()});
      continue;
    }
    auto results = pick_devices(state, *claim, node, used);
    if (!results) return std::nullopt;
    allocations.push_back({name, *std::move(results)});
  }
  return allocations;
}

/// Who holds the claim from the pod's binding on: the pod, or its PodGroup that names the claim itself. **Source:**
/// KEP-5729, gate DRAWorkloadResourceClaims.
Json consumer_of(const State& state, const Json& pod, const std::string& claim) {
  const auto group =
      state.store.get(Res::PodGroups, {ns_of(pod), text(pod, {"spec", "schedulingGroup", "podGroupName"})});
  const bool is_groups =
      group != nullptr && std::ranges::any_of(list(*group, {"spec", "resourceClaims"}), [&](const Json& one) {
        return text(one, {"resourceClaimName"}) == claim;
      });
  if (!is_groups) return {{"resource", "pods"}, {"name", name_of(pod)}, {"uid", uid_of(pod)}};
  return {
      {"apiGroup", "scheduling.k8s.io"}, {"resource", "podgroups"}, {"name", name_of(*group)}, {"uid", uid_of(*group)}};
}

void bind_pod(State& state, const Json& pod, const std::string& node, const std::vector<Allocation>& allocations) {
  const auto now = state.store.time_text();
  for (const auto& allocation : allocations) {
    state.store.edit(Res::Claims, allocation.claim, [&](Json& claim) {
      auto& status = claim["status"];
      if (allocation.results.is_array()) {
        const Json only = {{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
        const Json term = {{"matchFields", Json::array({only})}};
        status["allocation"] = {{"devices", {{"results", allocation.results}}},
                                {"nodeSelector", {{"nodeSelectorTerms", Json::array({term})}}},
                                {"allocationTimestamp", now}};
      }
      auto& reserved = status["reservedFor"];
      if (!reserved.is_array()) reserved = Json::array();
      const Json entry = consumer_of(state, pod, name_of(claim));
      if (std::ranges::find(reserved, entry) == reserved.end()) reserved.push_back(entry);
    });
  }
  state.store.edit(Res::Pods, {ns_of(pod), name_of(pod)}, [&](Json& changed) {
    changed["spec"]["nodeName"] = node;
    set_condition(changed, "PodScheduled", "True", "", "", now);
  });
}

/// The nodes with the fewest pods first, then by name: pods spread, and always in the same way.
std::vector<ObjectPtr> nodes_by_load(const State& state) {
  std::multimap<int, ObjectPtr> loads;
  for (const auto& [name, node] : state.store.all(Res::Nodes)) {
    loads.emplace(state.index.load_of(name.name), node);
  }
  std::vector<ObjectPtr> nodes;
  for (auto& [load, node] : loads) nodes.push_back(std::move(node));
  return nodes;
}

/// False: there is no place.
bool schedule(State& state, const Json& pod) {
  std::map<std::string, int> reasons;
  for (const auto& node : nodes_by_load(state)) {
    auto why = node_refuses(*node, pod);
    if (why.empty()) why = short_of(state, *node, pod);
    if (why.empty()) {
      if (const auto allocations = allocate(state, pod, name_of(*node))) {
        bind_pod(state, pod, name_of(*node), *allocations);
        return true;
      }
      why = "cannot allocate all claims";
    }
    ++reasons[why];
  }
  std::string words;
  for (const auto& [why, count] : reasons) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, why);
  const auto message = fmt::format("0/{} nodes are available: {}.", state.store.all(Res::Nodes).size(), words);
  state.store.edit(Res::Pods, {ns_of(pod), name_of(pod)}, [&](Json& changed) {
    set_condition(changed, "PodScheduled", "False", "Unschedulable", message, state.store.time_text());
  });
  return false;
}

std::uint64_t version_of(const Json& object) {
  return static_cast<std::uint64_t>(number(object, {"metadata", "resourceVersion"}));
}

}  // namespace

std::map<std::string, std::int64_t> extended_requests(const Json& pod) {
  std::map<std::string, std::int64_t> requests;
  for (const auto* kind : {"initContainers", "containers"}) {
    for (const auto& container : list(pod, {"spec", kind})) {
      const Json* limits = field(container, {"resources", "limits"});
      if (limits == nullptr) continue;
      for (const auto& [resource, amount] : limits->items()) {
        if (resource.find('/') != std::string::npos) requests[resource] += number(*limits, {resource});
      }
    }
  }
  return requests;
}

void run_scheduler(State& state) {
  state.taints.refresh(state.store, state.rules_served);
  state.follow();
  auto waiting = pods_named(state.store, state.index.unbound());
  std::erase_if(waiting, [](const ObjectPtr& pod) { return is_deleting(*pod) || is_terminal(*pod); });
  // In the order of their creation; the version of a waiting pod changes little, its creation never.
  const auto age = [](const ObjectPtr& pod) {
    return std::pair(text(*pod, {"metadata", "creationTimestamp"}), version_of(*pod));
  };
  std::ranges::sort(waiting, [&](const ObjectPtr& a, const ObjectPtr& b) { return age(a) < age(b); });
  std::map<std::string, Tried> tried;
  for (const auto& pod : waiting) {
    const auto uid = uid_of(*pod);
    if (!state.timers.ready("schedule/" + uid, state.lags.schedule)) continue;
    state.follow();
    const auto room = state.index.room();
    const auto before = state.tried.find(uid);
    const bool same = before != state.tried.end() && before->second.room == room && before->second.pod == pod &&
                      before->second.rules_served == state.rules_served;
    if (same || !schedule(state, *pod)) {
      tried[uid] = {room, state.store.get(Res::Pods, {ns_of(*pod), name_of(*pod)}), state.rules_served};
    }
  }
  state.tried = std::move(tried);
}

}  // namespace dhc::sim
