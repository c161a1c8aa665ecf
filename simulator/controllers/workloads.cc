#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "simulator/controllers/state.h"

namespace dhc::sim {
namespace {

bool is_ready(const Json& pod) { return condition_status(pod, "Ready") == "True" && !is_deleting(pod); }

bool is_active(const Json& pod) { return !is_terminal(pod) && !is_deleting(pod); }

std::vector<ObjectPtr> pods_of(State& state, const Json& owner) {
  state.follow();
  return pods_named(state.store, state.index.pods_of(uid_of(owner)));
}

void write_counts(State& state, Res res, const Json& owner, Json status) {
  state.store.edit(res, {ns_of(owner), name_of(owner)}, [&](Json& changed) { changed["status"] = std::move(status); });
}

/// A stable short hash of a template, as a ReplicaSet's name carries it.
std::string template_hash(const Json& deployment) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : deployment["spec"]["template"].dump()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return fmt::format("{:010x}", hash & 0xffffffffffULL);
}

void run_deployment(State& state, const Json& deployment) {
  const auto hash = template_hash(deployment);
  const Name name{ns_of(deployment), fmt::format("{}-{}", name_of(deployment), hash)};
  const auto replicas = number(deployment, {"spec", "replicas"}, 1);
  const auto set = state.store.get(Res::ReplicaSets, name);
  if (set == nullptr) {
    Json pod_template = deployment["spec"]["template"];
    pod_template["metadata"]["labels"]["pod-template-hash"] = hash;
    Json selector = deployment["spec"]["selector"];
    selector["matchLabels"]["pod-template-hash"] = hash;
    const Json owner = {{"apiVersion", "apps/v1"},   {"kind", "Deployment"}, {"name", name_of(deployment)},
                        {"uid", uid_of(deployment)}, {"controller", true},   {"blockOwnerDeletion", true}};
    Json metadata = {{"name", name.name},
                     {"namespace", name.ns},
                     {"labels", pod_template["metadata"]["labels"]},
                     {"ownerReferences", Json::array({owner})}};
    // The Deployment's annotations are copied to its ReplicaSets. **Source:** deployment controller.
    if (const Json* annotations = field(deployment, {"metadata", "annotations"}); annotations != nullptr) {
      metadata["annotations"] = *annotations;
    }
    const Json spec = {{"replicas", replicas}, {"selector", selector}, {"template", pod_template}};
    state.store.create(Res::ReplicaSets, {{"metadata", metadata}, {"spec", spec}, {"status", Json::object()}});
    return;
  }
  for (const auto& [other_name, other] : Objects(state.store.all(Res::ReplicaSets))) {
    if (!is_owned_by(*other, uid_of(deployment))) continue;
    const auto wanted = other_name == name ? replicas : 0;
    state.store.edit(Res::ReplicaSets, other_name, [&](Json& changed) { changed["spec"]["replicas"] = wanted; });
  }
  write_counts(state, Res::Deployments, deployment,
               {{"replicas", number(*set, {"status", "replicas"})},
                {"readyReplicas", number(*set, {"status", "readyReplicas"})},
                {"availableReplicas", number(*set, {"status", "readyReplicas"})},
                {"updatedReplicas", number(*set, {"status", "replicas"})},
                {"observedGeneration", number(deployment, {"metadata", "generation"})}});
}

/// A pod that is being deleted counts no more: its replacement comes at once.
void run_replica_set(State& state, const Json& set) {
  std::vector<ObjectPtr> active;
  std::int64_t ready = 0;
  for (const auto& pod : pods_of(state, set)) {
    if (is_active(*pod)) active.push_back(pod);
    ready += is_ready(*pod) ? 1 : 0;
  }
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(0, number(set, {"spec", "replicas"}, 1)));
  if (active.size() != wanted) {
    const auto key = fmt::format("rs/{}/{}", uid_of(set), active.size());
    if (state.timers.ready(key, state.lags.controller)) {
      for (auto have = active.size(); have < wanted; ++have) create_pod(state, set, set["spec"]["template"], "");
      for (auto have = active.size(); have > wanted; --have) {
        state.store.request_delete(Res::Pods, {ns_of(set), name_of(*active[have - 1])});
      }
    }
  }
  write_counts(state, Res::ReplicaSets, set,
               {{"replicas", active.size()},
                {"readyReplicas", ready},
                {"observedGeneration", number(set, {"metadata", "generation"})}});
}

/// The same name comes back with another UID, once the old object is gone.
void run_stateful_set(State& state, const Json& set) {
  const auto wanted = number(set, {"spec", "replicas"}, 1);
  std::int64_t ready = 0;
  for (std::int64_t i = 0; i < wanted; ++i) {
    const auto name = fmt::format("{}-{}", name_of(set), i);
    const auto pod = state.store.get(Res::Pods, {ns_of(set), name});
    const auto key = fmt::format("sts/{}/{}/{}", uid_of(set), i, pod == nullptr ? "" : uid_of(*pod));
    if (pod == nullptr) {
      if (state.timers.ready(key, state.lags.controller)) create_pod(state, set, set["spec"]["template"], name);
    } else if (is_terminal(*pod) && !is_deleting(*pod)) {
      if (state.timers.ready(key, state.lags.controller)) state.store.request_delete(Res::Pods, {ns_of(set), name});
    } else {
      ready += is_ready(*pod) ? 1 : 0;
    }
  }
  for (const auto& pod : pods_of(state, set)) {
    const auto name = name_of(*pod);
    const auto ordinal = name.substr(name.rfind('-') + 1);
    if (std::stoll(ordinal) >= wanted && !is_deleting(*pod)) state.store.request_delete(Res::Pods, {ns_of(set), name});
  }
  write_counts(state, Res::StatefulSets, set, {{"replicas", wanted}, {"readyReplicas", ready}});
}

void run_daemon_set(State& state, const Json& set) {
  std::int64_t ready = 0;
  const auto pods = pods_of(state, set);
  std::size_t wanted = 0;
  for (const auto& [node, object] : state.store.all(Res::Nodes)) {
    bool there = false;
    for (const auto& pod : pods) {
      if (text(*pod, {"spec", "nodeName"}) != node.name) continue;
      there = there || !is_terminal(*pod);
      ready += is_ready(*pod) ? 1 : 0;
    }
    const bool off = untolerated_taint(*object, set["spec"]["template"]["spec"], true) != nullptr;
    wanted += off ? 0 : 1;
    if (there || off) continue;
    // Its pods are bound by the scheduler, which leaves them Pending where something is short. **Source:** DaemonSet
    // controller since 1.12: a node affinity, no nodeName.
    if (!short_of(state, *object, set["spec"]["template"]).empty()) continue;
    const auto key = fmt::format("ds/{}/{}/{}", uid_of(set), node.name, pods.size());
    if (!state.timers.ready(key, state.lags.controller)) continue;
    Json pod_template = set["spec"]["template"];
    pod_template["spec"]["nodeName"] = node.name;
    // **Source:** apps/v1 ControllerRevisionHashLabelKey: a hash of the template.
    pod_template["metadata"]["labels"]["controller-revision-hash"] =
        fmt::format("{:x}", stable_hash(set["spec"]["template"].dump()));
    pod_template["metadata"]["labels"]["pod-template-generation"] = "1";  // nobody changes a DaemonSet here
    create_pod(state, set, pod_template, "");
  }
  write_counts(state, Res::DaemonSets, set, {{"desiredNumberScheduled", wanted}, {"numberReady", ready}});
}

template <class Run>
void each(State& state, Res res, Run run) {
  for (const auto& [name, object] : Objects(state.store.all(res))) {
    if (!is_deleting(*object)) run(state, *object);
  }
}

}  // namespace

void State::follow() {
  if (!index.follow(store)) return;
  for (const auto& [name, machine] : machines) touch(name);
}

void State::touch(const std::string& node) {
  index.restless.drivers.insert(node);
  index.restless.kubelets.insert(node);
}

std::vector<ObjectPtr> pods_named(const Store& store, const std::set<Name>& names) {
  std::vector<ObjectPtr> pods;
  for (const auto& name : names) {
    if (auto pod = store.get(Res::Pods, name); pod != nullptr) pods.push_back(std::move(pod));
  }
  return pods;
}

std::vector<ObjectPtr> pods_where(const Store& store, const std::function<bool(const Json&)>& keep) {
  std::vector<ObjectPtr> pods;
  for (const auto& [name, pod] : store.all(Res::Pods)) {
    if (keep(*pod)) pods.push_back(pod);
  }
  return pods;
}

bool is_owned_by(const Json& object, const std::string& uid) {
  const Json* owner = controller_of(object);
  return owner != nullptr && text(*owner, {"uid"}) == uid;
}

ObjectPtr create_pod(State& state, const Json& owner, const Json& pod_template, const std::string& name) {
  Json pod = pod_template;
  auto& metadata = pod["metadata"];
  metadata["namespace"] = ns_of(owner);
  if (name.empty()) {
    metadata["generateName"] = name_of(owner) + "-";
  } else {
    metadata["name"] = name;
  }
  const Json reference = {{"apiVersion", text(owner, {"apiVersion"})},
                          {"kind", text(owner, {"kind"})},
                          {"name", name_of(owner)},
                          {"uid", uid_of(owner)},
                          {"controller", true},
                          {"blockOwnerDeletion", true}};
  metadata["ownerReferences"] = Json::array({reference});
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
  return state.store.create(Res::Pods, std::move(pod));
}

void run_replicas(State& state) {
  const auto run = [&](Res res, std::set<Name>& restless, auto run_one) {
    state.look_at<Name>(restless, [&](const Name& name) {
      const auto object = state.store.get(res, name);
      if (object != nullptr && !is_deleting(*object)) run_one(state, *object);
    });
  };
  run(Res::Deployments, state.index.restless.deployments, run_deployment);
  run(Res::ReplicaSets, state.index.restless.replica_sets, run_replica_set);
  each(state, Res::StatefulSets, run_stateful_set);
  each(state, Res::DaemonSets, run_daemon_set);
}

}  // namespace dhc::sim
