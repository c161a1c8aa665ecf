#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/controllers/state.h"

namespace dhc::sim {
namespace {

void create_claims(State& state, const Json& pod) {
  for (const auto& pod_claim : list(pod, {"spec", "resourceClaims"})) {
    const auto wanted = text(pod_claim, {"resourceClaimTemplateName"});
    if (wanted.empty() || !claim_name_of(pod, pod_claim).empty()) continue;
    const auto source = state.store.get(Res::ClaimTemplates, {ns_of(pod), wanted});
    if (source == nullptr) continue;
    const auto name = text(pod_claim, {"name"});
    const auto claim_name = fmt::format("{}-{}-{}", name_of(pod), name, state.store.new_suffix());
    const Json owner = {
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name_of(pod)}, {"uid", uid_of(pod)}, {"controller", true}};
    state.store.create(Res::Claims, {{"metadata",
                                      {{"name", claim_name},
                                       {"namespace", ns_of(pod)},
                                       {"annotations", {{"resource.kubernetes.io/pod-claim-name", name}}},
                                       {"ownerReferences", Json::array({owner})}}},
                                     {"spec", (*source)["spec"]["spec"]},
                                     {"status", Json::object()}});
    state.store.edit(Res::Pods, {ns_of(pod), name_of(pod)}, [&](Json& changed) {
      auto& statuses = changed["status"]["resourceClaimStatuses"];
      if (!statuses.is_array()) statuses = Json::array();
      statuses.push_back({{"name", name}, {"resourceClaimName", claim_name}});
    });
  }
}

/// True while a pod of this name and UID lives and has not ended, and while a PodGroup is there.
bool is_live(const Store& store, const std::string& ns, const Json& consumer) {
  if (text(consumer, {"resource"}) == "podgroups") {
    const auto group = store.get(Res::PodGroups, {ns, text(consumer, {"name"})});
    return group != nullptr && uid_of(*group) == text(consumer, {"uid"});
  }
  const auto pod = store.get(Res::Pods, {ns, text(consumer, {"name"})});
  return pod != nullptr && uid_of(*pod) == text(consumer, {"uid"}) && !is_terminal(*pod);
}

/// **Source:** seen on 1.37.1: a template claim goes within a second of its pod's end, even while the pod object is
/// held by a finalizer; a standalone claim is freed when the last consumer ends.
void release(State& state, const Name& name, const Json& claim) {
  const Json* owner = controller_of(claim);
  if (owner != nullptr && text(*owner, {"kind"}) == "Pod" && !is_live(state.store, name.ns, *owner)) {
    if (state.timers.ready("claim-delete/" + uid_of(claim), state.lags.claim_release)) {
      state.store.request_delete(Res::Claims, name);
    }
    return;
  }
  Json kept = Json::array();
  bool dropped = false;
  for (const auto& consumer : list(claim, {"status", "reservedFor"})) {
    const bool gone = !is_live(state.store, name.ns, consumer);
    const auto key = fmt::format("release/{}/{}", uid_of(claim), text(consumer, {"uid"}));
    if (gone && state.timers.ready(key, state.lags.claim_release)) {
      dropped = true;
    } else {
      kept.push_back(consumer);
    }
  }
  if (!dropped) return;
  state.store.edit(Res::Claims, name, [&](Json& changed) {
    if (kept.empty()) {
      changed["status"] = Json::object();
    } else {
      changed["status"]["reservedFor"] = kept;
    }
  });
}

}  // namespace

std::string claim_name_of(const Json& pod, const Json& pod_claim) {
  if (auto direct = text(pod_claim, {"resourceClaimName"}); !direct.empty()) return direct;
  for (const auto& status : list(pod, {"status", "resourceClaimStatuses"})) {
    if (text(status, {"name"}) == text(pod_claim, {"name"})) return text(status, {"resourceClaimName"});
  }
  return {};
}

void run_claims(State& state) {
  state.look_at<Name>(state.index.restless.claimants, [&](const Name& name) {
    const auto pod = state.store.get(Res::Pods, name);
    if (pod != nullptr && !is_terminal(*pod) && !is_deleting(*pod)) create_claims(state, *pod);
  });
  state.look_at<Name>(state.index.restless.claims, [&](const Name& name) {
    if (const auto claim = state.store.get(Res::Claims, name); claim != nullptr) release(state, name, *claim);
  });
}

}  // namespace dhc::sim
