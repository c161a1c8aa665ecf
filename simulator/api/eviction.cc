#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"
#include "simulator/api/health_words.h"

namespace dhc::sim {
namespace {

/// How long the server retries a UID conflict on a Pending pod: 20 times 500 ms. **Source:** seen on 1.37.1 (10.07 s).
constexpr Millis kPendingConflict{10070};

std::vector<ObjectPtr> budgets_of(const Call& call, const Json& pod) {
  std::vector<ObjectPtr> budgets;
  for (const auto& [name, budget] : call.store.all(Res::Budgets)) {
    const Json* selector = field(*budget, {"spec", "selector"});
    if (name.ns == call.path.ns && selector != nullptr && label_selector_matches(*selector, pod)) {
      budgets.push_back(budget);
    }
  }
  return budgets;
}

Answer blocked(const Json& budget) {
  Details details;
  details.causes = Json::array(
      {cause("DisruptionBudget",
             fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name_of(budget),
                         number(budget, {"status", "desiredHealthy"}), number(budget, {"status", "currentHealthy"})))});
  return answer_failure(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                        details);
}

/// Takes one disruption from the budget. Nothing if that went well.
std::optional<Answer> spend(const Call& call, const Json& budget, const Json& pod) {
  const bool ready = condition_status(pod, "Ready") == "True";
  const auto healthy = number(budget, {"status", "currentHealthy"});
  const auto desired = number(budget, {"status", "desiredHealthy"});
  if (!ready) {
    // IfHealthyBudget: a pod that is not ready goes without cost while the others are healthy enough.
    if (text(budget, {"spec", "unhealthyPodEvictionPolicy"}) == "AlwaysAllow") return std::nullopt;
    if (desired > 0 && healthy >= desired) return std::nullopt;
  }
  if (number(budget, {"status", "disruptionsAllowed"}) <= 0) return blocked(budget);
  call.store.edit(Res::Budgets, {call.path.ns, name_of(budget)}, [&](Json& changed) {
    changed["status"]["disruptionsAllowed"] = number(budget, {"status", "disruptionsAllowed"}) - 1;
    changed["status"]["disruptedPods"][call.path.name] = call.store.time_text();
  });
  return std::nullopt;
}

}  // namespace

// **Source:** the pods/eviction handler; every answer here was seen on 1.37.1.
Answer handle_eviction(const Call& call) {
  if (call.request.method != k8s::Method::Post) {
    return answer_failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
  }
  const Json body = Json::parse(call.request.body, nullptr, false);
  if (!body.is_object()) return answer_failure(400, "BadRequest", "the object provided is unrecognized");
  if (const auto name = name_of(body); !name.empty() && name != call.path.name) {
    return answer_failure(400, "BadRequest", "name in URL does not match name in Eviction object");
  }
  const auto pod = call.stored();
  if (pod == nullptr) return not_found(Res::Pods, call.path.name);
  const auto wanted_uid = text(body, {"deleteOptions", "preconditions", "uid"});
  const bool other_pod = !wanted_uid.empty() && wanted_uid != uid_of(*pod);
  const bool pending = text(*pod, {"status", "phase"}) == "Pending";
  const bool dry_run = call.target.param("dryRun") == "All" || !list(body, {"deleteOptions", "dryRun"}).empty();
  if (!pending && !is_terminal(*pod) && !is_deleting(*pod)) {
    const auto budgets = budgets_of(call, *pod);
    if (budgets.size() > 1) {
      return answer_failure(500, "InternalError",
                            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
                            "support.");
    }
    if (budgets.size() == 1 && !dry_run) {
      // The budget is spent before the UID is looked at. **Source:** seen on 1.37.1.
      if (auto refusal = spend(call, *budgets.front(), *pod)) return *std::move(refusal);
    } else if (budgets.size() == 1 && number(*budgets.front(), {"status", "disruptionsAllowed"}) <= 0) {
      return blocked(*budgets.front());
    }
  }
  if (other_pod) {
    Answer answer = uid_precondition_failed(Res::Pods, call.path.name, wanted_uid, uid_of(*pod));
    if (pending) answer.delay = kPendingConflict;
    return answer;
  }
  if (!dry_run) {
    if (!is_terminal(*pod) && !is_deleting(*pod)) {
      // The condition is a write to the status. **Source:** seen on 1.37.1.
      if (const auto causes = faults_of_status(call.store, *pod); !causes.empty())
        return invalid(Res::Pods, call.path.name, causes);
      call.store.edit(Res::Pods, call.name(), [&](Json& changed) {
        set_condition(changed, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting",
                      call.store.time_text());
      });
    }
    std::optional<std::int64_t> grace;
    if (const auto* asked = field(body, {"deleteOptions", "gracePeriodSeconds"});
        asked != nullptr && asked->is_number()) {
      grace = asked->get<std::int64_t>();
    }
    call.store.request_delete(Res::Pods, call.name(), grace);
  }
  return answer_json(
      201,
      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Success"}, {"code", 201}});
}

}  // namespace dhc::sim
