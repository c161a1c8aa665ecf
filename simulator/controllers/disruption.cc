#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/target.h"
#include "simulator/controllers/state.h"

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

/// Those that the selector means, whatever has become of them.
std::vector<ObjectPtr> selected_pods(const State& state, const std::string& ns, const Json& selector) {
  std::vector<ObjectPtr> pods;
  const auto look = [&](const ObjectPtr& pod) {
    if (pod != nullptr && label_selector_matches(selector, *pod)) pods.push_back(pod);
  };
  const Json* labels = field(selector, {"matchLabels"});
  if (labels != nullptr && !labels->empty()) {
    const auto first = labels->begin();
    for (const auto& name : state.index.pods_labelled(ns, first.key(), first.value().get<std::string>()))
      look(state.store.get(Res::Pods, name));
    return pods;
  }
  const auto& all = state.store.all(Res::Pods);
  for (auto pod = all.lower_bound({ns, {}}); pod != all.end() && pod->first.ns == ns; ++pod) look(pod->second);
  return pods;
}

void run_budget(State& state, const Name& name, const Json& budget) {
  const Json* selector = field(budget, {"spec", "selector"});
  if (selector == nullptr) return;
  auto pods = selected_pods(state, name.ns, *selector);
  std::erase_if(pods, [](const ObjectPtr& pod) { return is_terminal(*pod); });
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

}  // namespace

void run_budgets(State& state) {
  state.look_at<Name>(state.index.restless.budgets, [&](const Name& name) {
    if (const auto budget = state.store.get(Res::Budgets, name); budget != nullptr) run_budget(state, name, *budget);
  });
}

void run_garbage(State& state) {
  const auto collect = [&](Res res, std::set<Name>& names) {
    state.look_at<Name>(names, [&](const Name& name) {
      const auto object = state.store.get(res, name);
      if (object == nullptr || is_deleting(*object)) return;
      const Json* owner = controller_of(*object);
      if (owner == nullptr || state.index.lives(text(*owner, {"uid"}))) return;
      state.store.request_delete(res, name);
    });
  };
  collect(Res::ReplicaSets, state.index.restless.ownerless_sets);
  collect(Res::Pods, state.index.restless.ownerless_pods);
}

}  // namespace dhc::sim
