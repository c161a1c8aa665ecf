#include "simulator/node/kubelet.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/health_words.h"
#include "simulator/node/shape.h"

namespace dhc::sim {
namespace {

std::string behaviour(const Json& pod, std::string_view name) {
  return text(pod, {"metadata", "annotations", std::string(kBehaviour) + std::string(name)});
}

std::set<std::string> ids_in_use(const State& state, const Machine& machine, const std::string& resource) {
  std::set<std::string> used;
  for (const auto& [uid, known] : machine.pods) {
    const auto pod = state.store.get(Res::Pods, known.name);
    if (pod == nullptr || uid_of(*pod) != uid || is_terminal(*pod)) continue;
    for (const auto& [container, resources] : known.devices) {
      if (const auto it = resources.find(resource); it != resources.end())
        used.insert(it->second.begin(), it->second.end());
    }
  }
  return used;
}

/// Gives each container its plugin devices, healthy and free ones only. The refusal is the kubelet's own sentence.
/// **Source:** seen on 1.37.1: it never gives an unhealthy plugin device to a new pod.
std::string assign_devices(State& state, Machine& machine, const Json& pod, KubeletPod& known) {
  for (const auto* kind : {"initContainers", "containers"}) {
    for (const auto& container : list(pod, {"spec", kind})) {
      const Json* limits = field(container, {"resources", "limits"});
      if (limits == nullptr) continue;
      for (const auto& [resource, amount] : limits->items()) {
        if (resource.find('/') == std::string::npos) continue;
        const auto wanted = static_cast<std::size_t>(number(*limits, {resource}));
        auto used = ids_in_use(state, machine, resource);
        for (const auto& [other, resources] : known.devices) {
          if (const auto it = resources.find(resource); it != resources.end())
            used.insert(it->second.begin(), it->second.end());
        }
        std::vector<std::string> free;
        const auto plugin = machine.plugins.find(resource);
        if (plugin != machine.plugins.end() && plugin->second.alive && plugin->second.registered) {
          for (const auto& device : plugin->second.known) {
            if (device.healthy && !used.contains(device.id)) free.push_back(device.id);
          }
        }
        if (free.size() < wanted) {
          return fmt::format(
              "Allocate failed due to requested number of devices unavailable for {}. Requested: {}, "
              "Available: {}, which is unexpected",
              resource, wanted, free.size());
        }
        free.resize(wanted);
        known.devices[text(container, {"name"})][resource] = std::move(free);
      }
    }
  }
  return {};
}

Json waiting_status(const Json& container, std::string_view reason) {
  return {{"name", text(container, {"name"})},
          {"image", text(container, {"image"})},
          {"imageID", ""},
          {"ready", false},
          {"started", false},
          {"restartCount", 0},
          {"lastState", Json::object()},
          {"state", {{"waiting", {{"reason", reason}}}}}};
}

bool is_kubelets(const Json& condition) {
  const auto type = text(condition, {"type"});
  return type == "Initialized" || type == "Ready" || type == "ContainersReady";
}

/// The status as the kubelet has it: what the server refused, with the conditions that others have written since.
Json own_status(const KubeletPod& known, const Json& pod) {
  if (!known.refused) return pod["status"];
  Json status = *known.refused;
  Json conditions = Json::array();
  for (const auto& condition : list(pod, {"status", "conditions"})) {
    if (!is_kubelets(condition)) conditions.push_back(condition);
  }
  for (const auto& condition : list(status, {"conditions"})) {
    if (is_kubelets(condition)) conditions.push_back(condition);
  }
  status["conditions"] = std::move(conditions);
  return status;
}

/// A status that the server refuses is written again, whole, when the pod is next looked at.
/// **Source:** seen on 1.37.1: 422 for the whole status.
void write_status(State& state, KubeletPod& known, const std::function<void(Json&)>& change) {
  const auto stored = state.store.get(Res::Pods, known.name);
  if (stored == nullptr) return;
  Json wanted = *stored;
  wanted["status"] = own_status(known, *stored);
  change(wanted);
  if (faults_of_status(state.store, wanted).empty()) {
    known.refused.reset();
    (void)state.store.replace(Res::Pods, std::move(wanted));
    return;
  }
  known.refused = std::make_shared<const Json>(std::move(wanted["status"]));
  known.refresh_at = next_pod_sync(state);
  state.timers.wake_at(*known.refresh_at);
}

void admit(State& state, Machine& machine, const Json& pod) {
  KubeletPod known;
  known.name = {ns_of(pod), name_of(pod)};
  const auto refusal = assign_devices(state, machine, pod, known);
  const auto now = state.store.time_text();
  const bool no_image = behaviour(pod, "image-missing") == "true";
  write_status(state, known, [&](Json& changed) {
    auto& status = changed["status"];
    status["startTime"] = now;
    if (!refusal.empty()) {
      // **Source:** seen on 1.37.1 in the gap between a plugin's report and the node's status.
      status["phase"] = "Failed";
      status["reason"] = "UnexpectedAdmissionError";
      status["message"] = "Pod was rejected: " + refusal;
      return;
    }
    status["containerStatuses"] = Json::array();
    for (const auto& container : list(pod, {"spec", "containers"})) {
      status["containerStatuses"].push_back(
          waiting_status(container, no_image ? "ErrImageNeverPull" : "ContainerCreating"));
    }
    for (const auto& container : list(pod, {"spec", "initContainers"})) {
      status["initContainerStatuses"].push_back(waiting_status(container, "PodInitializing"));
    }
    set_condition(changed, "Initialized", "True", "", "", now);
    set_condition(changed, "Ready", "False", "ContainersNotReady", "", now);
    set_condition(changed, "ContainersReady", "False", "ContainersNotReady", "", now);
    write_health(state, machine, known, pod, status);
  });
  machine.pods[uid_of(pod)] = std::move(known);
}

void set_running(Json& statuses, const std::string& now) {
  for (auto& container : statuses) {
    container["state"] = {{"running", {{"startedAt", now}}}};
    container["ready"] = true;
    container["started"] = true;
    container["imageID"] = "sha256:63de12fef1df5cb123a9bbf1cd57050cae50d17aaae9a9325cdfab314fd0a2c9";
  }
}

void mark_claims_ready(State& state, const Json& pod) {
  const auto now = state.store.time_text();
  for (const auto& pod_claim : list(pod, {"spec", "resourceClaims"})) {
    state.store.edit(Res::Claims, {ns_of(pod), claim_name_of(pod, pod_claim)}, [&](Json& claim) {
      if (claim["status"].contains("devices")) return;
      Json devices = Json::array();
      for (const auto& result : list(claim, {"status", "allocation", "devices", "results"})) {
        const Json ready = {{"type", "Ready"},
                            {"status", "True"},
                            {"lastTransitionTime", now},
                            {"reason", "Prepared"},
                            {"message", "device prepared"}};
        devices.push_back({{"driver", text(result, {"driver"})},
                           {"pool", text(result, {"pool"})},
                           {"device", text(result, {"device"})},
                           {"conditions", Json::array({ready})}});
      }
      claim["status"]["devices"] = std::move(devices);
    });
  }
}

void start(State& state, Machine& machine, KubeletPod& known, const Json& pod) {
  known.running = true;
  mark_claims_ready(state, pod);
  const auto now = state.store.time_text();
  const auto ip = fmt::format("10.244.{}.{}", machine.number, 2 + state.pods_started++ % 250);
  write_status(state, known, [&](Json& changed) {
    auto& status = changed["status"];
    status["phase"] = "Running";
    status["podIP"] = ip;
    status["podIPs"] = Json::array({Json{{"ip", ip}}});
    set_running(status["containerStatuses"], now);
    if (status.contains("initContainerStatuses")) set_running(status["initContainerStatuses"], now);
    set_condition(changed, "Ready", "True", "", "", now);
    set_condition(changed, "ContainersReady", "True", "", "", now);
    write_health(state, machine, known, pod, status);
  });
}

/// The end of a pod that is being deleted: what its containers do on SIGTERM, then the object's removal.
void terminate(State& state, const Json& pod) {
  const Name name{ns_of(pod), name_of(pod)};
  const auto uid = uid_of(pod);
  if (is_terminal(pod)) {
    if (!state.timers.ready("gone/" + uid, state.lags.removal)) return;
    if (number(pod, {"metadata", "deletionGracePeriodSeconds"}) > 0 || list(pod, {"metadata", "finalizers"}).empty()) {
      state.store.finish_delete(Res::Pods, name);
    }
    return;
  }
  const auto how = behaviour(pod, "on-sigterm");
  if (how == "hang") return;
  const auto grace = Seconds(number(pod, {"metadata", "deletionGracePeriodSeconds"}, 30));
  const auto wait = how == "ignore" ? std::chrono::duration_cast<Millis>(grace) : state.lags.sigterm_exit;
  if (!state.timers.ready("exit/" + uid, wait)) return;
  end_containers(state, pod, how == "exit-zero" ? 0 : (how == "ignore" ? 137 : 143));
}

void run_pod(State& state, Machine& machine, const Json& pod) {
  const auto uid = uid_of(pod);
  if (is_deleting(pod)) {
    terminate(state, pod);
    return;
  }
  if (is_terminal(pod)) return;
  auto known = machine.pods.find(uid);
  if (known == machine.pods.end()) {
    if (state.timers.ready("admit/" + uid, state.lags.admit)) admit(state, machine, pod);
    return;
  }
  if (!known->second.running) {
    const bool no_image = behaviour(pod, "image-missing") == "true";
    if (!no_image && state.timers.ready("start/" + uid, state.lags.start)) start(state, machine, known->second, pod);
    return;
  }
  if (const auto run_for = number(pod, {"metadata", "annotations", std::string(kBehaviour) + "run-for-ms"});
      run_for > 0) {
    auto& done_at = known->second.done_at;
    if (!done_at) {
      done_at = state.mono() + Millis(run_for);
      state.timers.call_at(*done_at, machine.name);
    } else if (state.mono() >= *done_at) {
      done_at.reset();
      end_containers(state, pod, 0);
    }
  } else {
    known->second.done_at.reset();
  }
}

void refresh_health(State& state, Machine& machine) {
  std::erase_if(machine.pods, [&](const auto& entry) {
    const auto pod = state.store.get(Res::Pods, entry.second.name);
    return pod == nullptr || uid_of(*pod) != entry.first;
  });
  for (auto& [uid, known] : machine.pods) {
    if (!known.refresh_at) continue;
    if (*known.refresh_at > state.mono()) {
      state.timers.wake_at(*known.refresh_at);
      continue;
    }
    known.refresh_at.reset();
    const auto pod = state.store.get(Res::Pods, known.name);
    // Nothing in a dead pod says what became of its device. **Source:** seen on 1.37.1.
    if (is_terminal(*pod)) continue;
    write_status(state, known, [&](Json& changed) { write_health(state, machine, known, *pod, changed["status"]); });
  }
}

void write_node_status(State& state, Machine& machine) {
  if (!machine.status_due) return;
  if (*machine.status_due > state.mono()) {
    state.timers.wake_at(*machine.status_due);
    return;
  }
  machine.status_due.reset();
  state.store.edit(Res::Nodes, {"", machine.name}, [&](Json& node) {
    for (const auto& [resource, plugin] : machine.plugins) {
      const auto healthy = std::ranges::count_if(plugin.known, &PluginDevice::healthy);
      const bool serving = plugin.alive && plugin.registered;
      node["status"]["capacity"][resource] = std::to_string(plugin.known.size());
      node["status"]["allocatable"][resource] = std::to_string(serving ? healthy : 0);
    }
  });
}

void register_plugins(State& state, Machine& machine) {
  for (auto& [resource, plugin] : machine.plugins) {
    if (!plugin.registers_at) continue;
    if (*plugin.registers_at > state.mono()) {
      state.timers.wake_at(*plugin.registers_at);
      continue;
    }
    plugin.registers_at.reset();
    if (!plugin.alive) continue;
    plugin.registered = true;
    plugin.known = plugin.devices;
    refresh_all(machine, state.mono());
    node_status_due(machine, state.mono() + state.lags.registered_node);
  }
}

}  // namespace

namespace {

/// What the kubelet says of a pod that it knows.
void write_status_of(State& state, const Json& pod, const std::function<void(Json&)>& change) {
  const auto machine = state.machines.find(text(pod, {"spec", "nodeName"}));
  const auto uid = uid_of(pod);
  if (machine != state.machines.end()) {
    if (const auto known = machine->second.pods.find(uid); known != machine->second.pods.end())
      return write_status(state, known->second, change);
  }
  state.store.edit(Res::Pods, {ns_of(pod), name_of(pod)}, change);
}

}  // namespace

void restart_containers(State& state, const Json& pod) {
  const auto now = state.store.time_text();
  write_status_of(state, pod, [&](Json& changed) {
    for (auto& container : changed["status"]["containerStatuses"]) {
      const auto began = text(container, {"state", "running", "startedAt"});
      container["restartCount"] = number(container, {"restartCount"}) + 1;
      container["lastState"] = {
          {"terminated", {{"exitCode", 137}, {"reason", "Error"}, {"startedAt", began}, {"finishedAt", now}}}};
      container["state"] = {{"running", {{"startedAt", now}}}};
    }
  });
}

void end_containers(State& state, const Json& pod, int exit_code) {
  const auto now = state.store.time_text();
  const auto policy = text(pod, {"spec", "restartPolicy"});
  const bool restarts = !is_deleting(pod) && (policy == "Always" || (policy == "OnFailure" && exit_code != 0));
  const Json ended = {{"terminated",
                       {{"exitCode", exit_code},
                        {"reason", exit_code == 0 ? "Completed" : "Error"},
                        {"startedAt", text(pod, {"status", "startTime"})},
                        {"finishedAt", now}}}};
  write_status_of(state, pod, [&](Json& changed) {
    auto& status = changed["status"];
    if (restarts) {
      // The same container in the same pod keeps its devices. **Source:** kubelet devicesToAllocate.
      for (auto& container : status["containerStatuses"]) {
        container["restartCount"] = number(container, {"restartCount"}) + 1;
        container["lastState"] = ended;
      }
      return;
    }
    status["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
    for (auto& container : status["containerStatuses"]) {
      container["state"] = ended;
      container["ready"] = false;
      container["started"] = false;
      // A DRA pod loses the field when it ends, a plugin's pod keeps it. **Source:** seen on 1.37.1.
      if (!container.contains("allocatedResourcesStatus")) continue;
      auto& entries = container["allocatedResourcesStatus"];
      Json kept = Json::array();
      for (const auto& entry : entries) {
        if (!text(entry, {"name"}).starts_with("claim:")) kept.push_back(entry);
      }
      if (kept.empty()) {
        container.erase("allocatedResourcesStatus");
      } else {
        entries = std::move(kept);
      }
    }
    set_condition(changed, "Ready", "False", exit_code == 0 ? "PodCompleted" : "PodFailed", "", now);
    set_condition(changed, "ContainersReady", "False", exit_code == 0 ? "PodCompleted" : "PodFailed", "", now);
  });
}

void run_kubelets(State& state) {
  state.follow();
  auto& restless = state.index.restless.kubelets;
  restless.merge(state.timers.take_calls());
  state.look_at<std::string>(restless, [&](const std::string& node) {
    const auto found = state.machines.find(node);
    if (found == state.machines.end() || !found->second.ready) return;
    auto& machine = found->second;
    register_plugins(state, machine);
    for (const auto& pod : pods_named(state.store, state.index.pods_on(node))) run_pod(state, machine, *pod);
    refresh_health(state, machine);
    write_node_status(state, machine);
  });
}

}  // namespace dhc::sim
