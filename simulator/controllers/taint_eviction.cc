#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/health_words.h"
#include "simulator/controllers/state.h"

namespace dhc::sim {
namespace {

/// **Source:** seen on 1.37.1: deleted after a second, whatever a PodDisruptionBudget says.
void evict_for_taint(State& state, const std::string& ns, const std::string& pod_name, const std::string& uid) {
  const auto pod = state.store.get(Res::Pods, {ns, pod_name});
  if (pod == nullptr || uid_of(*pod) != uid || is_deleting(*pod) || is_terminal(*pod)) return;
  // The condition is written before the pod is deleted.
  if (!faults_of_status(state.store, *pod).empty()) return;
  if (!state.timers.ready("taint-eviction/" + uid, state.lags.taint_eviction)) return;
  state.store.edit(Res::Pods, {ns, pod_name}, [&](Json& changed) {
    set_condition(changed, "DisruptionTarget", "True", "DeletionByDeviceTaintManager",
                  "Device Taint manager: deleting due to NoExecute taint", state.store.time_text());
  });
  state.store.request_delete(Res::Pods, {ns, pod_name});
}

/// What a rule selects now.
struct Selected {
  std::size_t published = 0;
  std::set<std::string> allocated;
  std::set<std::string> pods;  ///< By UID.
  std::set<std::string> namespaces;
};

Selected selected_by(const State& state, const Json& rule) {
  Selected selected;
  for (const auto& [name, slice] : state.store.all(Res::Slices)) {
    for (const auto& device : list(*slice, {"spec", "devices"})) {
      const bool fits = rule_selects(rule, text(*slice, {"spec", "driver"}), text(*slice, {"spec", "pool", "name"}),
                                     text(device, {"name"}));
      selected.published += fits ? 1 : 0;
    }
  }
  for (const auto& [name, claim] : state.store.all(Res::Claims)) {
    bool any = false;
    for (const auto& result : list(*claim, {"status", "allocation", "devices", "results"})) {
      const auto driver = text(result, {"driver"});
      const auto pool = text(result, {"pool"});
      const auto device = text(result, {"device"});
      if (!rule_selects(rule, driver, pool, device)) continue;
      any = true;
      selected.allocated.insert(driver + "/" + pool + "/" + device);
    }
    if (!any) continue;
    for (const auto& consumer : list(*claim, {"status", "reservedFor"})) {
      selected.pods.insert(text(consumer, {"uid"}));
      selected.namespaces.insert(name.ns);
    }
  }
  return selected;
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// **Source:** seen on 1.37.1: for effect None the counts are in this sentence, made once for each change of the spec.
std::string no_effect(const Selected& selected) {
  return fmt::format(
      "{} selected. {} selected. {} would be evicted in {} if the effect was NoExecute. This information will not be "
      "updated again. Recreate the DeviceTaintRule to trigger an update.",
      counted(selected.published, "published device"), counted(selected.allocated.size(), "allocated device"),
      counted(selected.pods.size(), "pod"), counted(selected.namespaces.size(), "namespace"));
}

void describe_rule(State& state, const Name& name, const Json& rule) {
  const auto generation = number(rule, {"metadata", "generation"});
  for (const auto& condition : list(rule, {"status", "conditions"})) {
    if (number(condition, {"observedGeneration"}) == generation) return;
  }
  if (!state.timers.ready(fmt::format("rule/{}/{}", uid_of(rule), generation), state.lags.rule_condition)) return;
  const auto effect = text(rule, {"spec", "taint", "effect"});
  std::string reason = "OtherEffect";
  std::string message = "Eviction only happens for the NoExecute effect.";
  if (effect == "None") {
    reason = "NoEffect";
    message = no_effect(selected_by(state, rule));
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

bool executes(const State& state, const Json& claim) {
  for (const auto& result : list(claim, {"status", "allocation", "devices", "results"})) {
    for (const auto& taint :
         state.taints.of(text(result, {"driver"}), text(result, {"pool"}), text(result, {"device"}))) {
      if (taint.effect == "NoExecute") return true;
    }
  }
  return false;
}

}  // namespace

void run_taint_eviction(State& state) {
  if (state.rules_served) {
    state.look_at<Name>(state.index.restless.rules, [&](const Name& name) {
      if (const auto rule = state.store.get(Res::TaintRules, name); rule != nullptr) describe_rule(state, name, *rule);
    });
  }
  state.follow();
  state.taints.refresh(state.store, state.rules_served);
  std::set<Name> names;
  if (state.taints.executes_widely()) {
    for (const auto& [name, claim] : state.store.all(Res::Claims)) names.insert(name);
  } else {
    for (const auto& device : state.taints.executing()) {
      const auto& claims = state.index.claims_on(device);
      names.insert(claims.begin(), claims.end());
    }
  }
  for (const auto& name : names) {
    const auto claim = state.store.get(Res::Claims, name);
    if (!executes(state, *claim)) continue;
    for (const auto& consumer : list(*claim, {"status", "reservedFor"})) {
      evict_for_taint(state, name.ns, text(consumer, {"name"}), text(consumer, {"uid"}));
    }
  }
}

}  // namespace dhc::sim
