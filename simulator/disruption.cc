#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/state.h"
#include "simulator/target.h"

namespace dhc::sim {
namespace {

/// How long an eviction that nobody saw happen holds its place in the budget. **Source:** disruption controller's
/// DeletionTimeout, seen on 1.37.1 (2 min 4 s).
constexpr Millis kDisruptionHeld = std::chrono::minutes(2);

/// `minAvailable` and its like: a number, or a part of `of` in percent, rounded up.
std::int64_t amount(const Json& value, std::int64_t of) {
  if (value.is_number()) return value.get<std::int64_t>();
  const auto words = value.get<std::string>();
  if (!words.ends_with('%')) return 0;
  const auto percent = std::stoll(words.substr(0, words.size() - 1));
  return (of * percent + 99) / 100;
}

void run_budget(State& state, const Name& name, const Json& budget) {
  const Json* selector = field(budget, {"spec", "selector"});
  if (selector == nullptr) return;
  const auto pods = pods_where(state.store, [&](const Json& pod) {
    return ns_of(pod) == name.ns && label_selector_matches(*selector, pod) && !is_terminal(pod);
  });
  // A place in `disruptedPods` is given back when its pod is seen going, or after two minutes.
  Json disrupted = Json::object();
  if (const Json* entries = field(budget, {"status", "disruptedPods"}); entries != nullptr) {
    for (const auto& [pod_name, since] : entries->items()) {
      const auto pod = state.store.get(Res::Pods, {name.ns, pod_name});
      const auto key = fmt::format("disrupted/{}/{}/{}", uid_of(budget), pod_name, since.dump());
      const bool over = pod == nullptr || is_deleting(*pod) || state.timers.ready(key, kDisruptionHeld);
      if (!over) disrupted[pod_name] = since;
    }
  }
  std::int64_t expected = 0;
  std::int64_t healthy = 0;
  for (const auto& pod : pods) {
    if (!is_deleting(*pod)) ++expected;
    const bool ready = condition_status(*pod, "Ready") == "True";
    if (ready && !is_deleting(*pod) && !disrupted.contains(name_of(*pod))) ++healthy;
  }
  // With a controller the expected count is its replicas, not the pods there are.
  for (const auto& pod : pods) {
    const Json* owner = controller_of(*pod);
    if (owner == nullptr) continue;
    const auto res = text(*owner, {"kind"}) == "StatefulSet" ? Res::StatefulSets : Res::ReplicaSets;
    if (const auto set = state.store.get(res, {name.ns, text(*owner, {"name"})}); set != nullptr) {
      expected = number(*set, {"spec", "replicas"}, 1);
    }
    break;
  }
  std::int64_t desired = 0;
  if (const Json* least = field(budget, {"spec", "minAvailable"}); least != nullptr) desired = amount(*least, expected);
  if (const Json* most = field(budget, {"spec", "maxUnavailable"}); most != nullptr) {
    desired = std::max<std::int64_t>(0, expected - amount(*most, expected));
  }
  const auto allowed = std::max<std::int64_t>(0, healthy - desired);
  state.store.edit(Res::Budgets, name, [&](Json& changed) {
    Json status = {{"currentHealthy", healthy},
                   {"desiredHealthy", desired},
                   {"expectedPods", expected},
                   {"disruptionsAllowed", allowed},
                   {"observedGeneration", number(budget, {"metadata", "generation"})}};
    if (!disrupted.empty()) status["disruptedPods"] = disrupted;
    changed["status"] = std::move(status);
  });
}

bool holds(const Json& claim, const std::string& driver, const std::string& pool, const std::string& device) {
  for (const auto& result : list(claim, {"status", "allocation", "devices", "results"})) {
    if (text(result, {"driver"}) == driver && text(result, {"pool"}) == pool && text(result, {"device"}) == device) {
      return true;
    }
  }
  return false;
}

/// **Source:** seen on 1.37.1: deleted after a second, whatever a PodDisruptionBudget says.
void evict_for_taint(State& state, const std::string& ns, const std::string& pod_name, const std::string& uid) {
  const auto pod = state.store.get(Res::Pods, {ns, pod_name});
  if (pod == nullptr || uid_of(*pod) != uid || is_deleting(*pod) || is_terminal(*pod)) return;
  if (!state.timers.ready("taint-eviction/" + uid, state.lags.taint_eviction)) return;
  state.store.edit(Res::Pods, {ns, pod_name}, [&](Json& changed) {
    set_condition(changed, "DisruptionTarget", "True", "DeletionByDeviceTaintManager",
                  "Device Taint manager: deleting due to NoExecute taint", state.store.time_text());
  });
  state.store.request_delete(Res::Pods, {ns, pod_name});
}

std::size_t selected(const State& state, const Json& rule, bool allocated_only) {
  std::size_t count = 0;
  const auto part = [&](std::string_view name, const std::string& value) {
    const Json* wanted = field(rule, {"spec", "deviceSelector", name});
    return wanted == nullptr || wanted->is_null() || *wanted == value;
  };
  for (const auto& [name, slice] : state.store.all(Res::Slices)) {
    const auto driver = text(*slice, {"spec", "driver"});
    const auto pool = text(*slice, {"spec", "pool", "name"});
    for (const auto& device : list(*slice, {"spec", "devices"})) {
      const auto device_name = text(device, {"name"});
      if (!part("driver", driver) || !part("pool", pool) || !part("device", device_name)) continue;
      bool allocated = false;
      for (const auto& [claim_name, claim] : state.store.all(Res::Claims)) {
        allocated = allocated || holds(*claim, driver, pool, device_name);
      }
      count += !allocated_only || allocated ? 1 : 0;
    }
  }
  return count;
}

/// **Source:** seen on 1.37.1: for effect None the counts are in this sentence, made once for each change of the spec.
void describe_rule(State& state, const Name& name, const Json& rule) {
  const auto generation = number(rule, {"metadata", "generation"});
  for (const auto& condition : list(rule, {"status", "conditions"})) {
    if (number(condition, {"observedGeneration"}) == generation) return;
  }
  const auto effect = text(rule, {"spec", "taint", "effect"});
  std::string reason = "OtherEffect";
  std::string message = "Eviction only happens for the NoExecute effect.";
  if (effect == "None") {
    reason = "NoEffect";
    message = fmt::format(
        "{} published device selected. {} allocated device selected. This information will not be "
        "updated again. Recreate the DeviceTaintRule to trigger an update.",
        selected(state, rule, false), selected(state, rule, true));
  } else if (effect == "NoExecute") {
    reason = "Completed";
    message = "The eviction of pods goes on as they are found.";
  }
  state.store.edit(Res::TaintRules, name, [&](Json& changed) {
    changed["status"]["conditions"] = Json::array({Json{{"type", "EvictionInProgress"},
                                                        {"status", "False"},
                                                        {"observedGeneration", generation},
                                                        {"lastTransitionTime", state.store.time_text()},
                                                        {"reason", reason},
                                                        {"message", message}}});
  });
}

}  // namespace

void run_budgets(State& state) {
  for (const auto& [name, budget] : Objects(state.store.all(Res::Budgets))) run_budget(state, name, *budget);
}

void run_taint_eviction(State& state) {
  for (const auto& [name, rule] : Objects(state.store.all(Res::TaintRules))) describe_rule(state, name, *rule);
  for (const auto& [name, claim] : Objects(state.store.all(Res::Claims))) {
    bool executes = false;
    for (const auto& result : list(*claim, {"status", "allocation", "devices", "results"})) {
      for (const auto& taint :
           device_taints(state, text(result, {"driver"}), text(result, {"pool"}), text(result, {"device"}))) {
        executes = executes || taint.effect == "NoExecute";
      }
    }
    if (!executes) continue;
    for (const auto& consumer : list(*claim, {"status", "reservedFor"})) {
      evict_for_taint(state, name.ns, text(consumer, {"name"}), text(consumer, {"uid"}));
    }
  }
}

void run_garbage(State& state) {
  std::set<std::string> uids;
  for (const auto& type : all_types()) {
    for (const auto& [name, object] : state.store.all(type.id)) uids.insert(uid_of(*object));
  }
  for (const auto res : {Res::ReplicaSets, Res::Pods}) {
    for (const auto& [name, object] : Objects(state.store.all(res))) {
      const Json* owner = controller_of(*object);
      if (owner == nullptr || is_deleting(*object) || uids.contains(text(*owner, {"uid"}))) continue;
      state.store.request_delete(res, name);
    }
  }
}

}  // namespace dhc::sim
