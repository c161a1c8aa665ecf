#include "simulator/script/cluster.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/node/kubelet.h"

namespace dhc::sim {
namespace {

/// More rounds than any chain of reactions within one moment has.
constexpr int kMaxRounds = 64;
constexpr std::size_t kRequestsKept = 10000;

}  // namespace

Cluster::Cluster(std::uint64_t seed, const Now& start) : state_(seed) {
  state_.store.set_now(start);
  settings_.unserved = {Res::PodGroups};  // as by default: gate GenericWorkload
  for (const auto* name : {"default", "kube-system", "device-health-system"}) add_namespace(name);
}

void Cluster::step(const Now& now) {
  state_.store.set_now(now);
  const auto due = state_.timers.next();
  if (!dirty_ && (!due || *due > now.mono)) return;
  dirty_ = false;
  state_.timers.begin(now.mono);
  for (int round = 0; round < kMaxRounds; ++round) {
    const auto before = state_.store.rv();
    run_drivers(state_);
    run_claims(state_);
    run_scheduler(state_);
    run_kubelets(state_);
    run_replicas(state_);
    run_jobs(state_);
    run_budgets(state_);
    run_taint_eviction(state_);
    run_garbage(state_);
    if (state_.store.rv() == before) break;
  }
  state_.timers.end();
}

std::optional<MonoTime> Cluster::next_wake() const {
  if (dirty_) return now().mono;
  return state_.timers.next();
}

Answer Cluster::handle(const k8s::Request& request, const Now& now) {
  step(now);
  const auto fault = faults_.take(request);
  Answer answer;
  if (fault && fault->status) {
    if (fault->handled_first) static_cast<void>(sim::handle(state_.store, settings_, request, now));
    answer = faulty_answer(*fault);
  } else {
    answer = sim::handle(state_.store, settings_, request, now);
  }
  if (fault) spoil(*fault, answer);
  requests_.push_back({now, request.method, request.target, request.body, answer.status});
  if (requests_.size() > kRequestsKept) requests_.pop_front();
  // Nobody in the cluster acts on an Event.
  if (request.method != k8s::Method::Get && request.target.find("/events") == std::string::npos) changed();
  step(now);
  return answer;
}

std::vector<RequestRecord> Cluster::writes() const {
  std::vector<RequestRecord> out;
  for (const auto& record : requests_) {
    const bool review = record.target.find("accessreviews") != std::string::npos;
    if (record.method != k8s::Method::Get && record.status < 300 && !review) out.push_back(record);
  }
  return out;
}

std::vector<std::string> Cluster::evictions() const {
  std::vector<std::string> out;
  for (const auto& record : writes()) {
    const auto path = parse_resource_path(parse_target(record.target));
    if (path && path->subresource == "eviction") out.push_back(path->ns + "/" + path->name);
  }
  return out;
}

ObjectPtr Cluster::get(Res res, const std::string& ns, const std::string& name) const {
  return state_.store.get(res, {ns, name});
}

std::vector<std::string> Cluster::pod_names(const std::string& ns) const {
  std::vector<std::string> names;
  for (const auto& [name, pod] : state_.store.all(Res::Pods)) {
    if (name.ns == ns) names.push_back(name.name);
  }
  return names;
}

std::vector<std::string> Cluster::holders(const std::string& node, const std::string& device) const {
  std::vector<std::string> out;
  for (const auto& [name, pod] : state_.store.all(Res::Pods)) {
    if (text(*pod, {"spec", "nodeName"}) != node || is_terminal(*pod)) continue;
    bool holds = false;
    for (const auto& container : list(*pod, {"status", "containerStatuses"})) {
      for (const auto& entry : list(container, {"allocatedResourcesStatus"})) {
        for (const auto& one : list(entry, {"resources"})) {
          const auto id = text(one, {"resourceID"});
          holds = holds || id == device || id.ends_with("-" + device);
        }
      }
    }
    if (holds) out.push_back(name.ns + "/" + name.name);
  }
  return out;
}

}  // namespace dhc::sim
