// What Fleet makes of each change that is stored.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/fleet_year/fleet.h"

namespace dhc::year {
namespace {

using sim::ChangeType;
using sim::field;
using sim::Json;
using sim::list;
using sim::number;
using sim::Res;
using sim::text;

bool shuts(const Json& taint) {
  const auto effect = text(taint, {"effect"});
  return effect == "NoSchedule" || effect == "NoExecute";
}

constexpr Millis kKept = std::chrono::minutes(5);  // of a Job that has ended, as with ttlSecondsAfterFinished
constexpr std::string_view kJobSpace = "batch";

}  // namespace

bool Fleet::observe() {
  const auto before = cluster.store().rv();
  while (!old_jobs_.empty() && old_jobs_.begin()->first <= now.mono) {
    static_cast<void>(cluster.kubectl_delete(Res::Jobs, std::string(kJobSpace), old_jobs_.begin()->second));
    old_jobs_.erase(old_jobs_.begin());
  }
  for (const auto res : {Res::Claims, Res::Pods, Res::Jobs, Res::TaintRules, Res::Slices, Res::Nodes}) {
    auto& seen = seen_[res];
    const auto& changes = cluster.store().changes(res);
    if (changes.empty() || changes.back().rv <= seen) continue;
    const auto first = std::partition_point(changes.begin(), changes.end(),
                                            [&](const sim::Change& change) { return change.rv <= seen; });
    const std::vector<sim::Change> news(first, changes.end());  // what is written meanwhile comes with the next call
    seen = news.back().rv;
    for (const auto& change : news) {
      switch (res) {
        case Res::Claims:
          claim_changed(change);
          break;
        case Res::Pods:
          pod_changed(change);
          break;
        case Res::Jobs:
          job_changed(change);
          break;
        case Res::TaintRules:
          rule_changed(change);
          break;
        case Res::Slices:
          slice_changed(change);
          break;
        default:
          node_changed(change);
          break;
      }
    }
  }
  return cluster.store().rv() != before;
}

std::optional<MonoTime> Fleet::next_due() const {
  return old_jobs_.empty() ? std::nullopt : std::optional(old_jobs_.begin()->first);
}

void Fleet::claim_changed(const sim::Change& change) {
  const sim::Name name{sim::ns_of(*change.object), sim::name_of(*change.object)};
  Claim after;
  if (change.type != ChangeType::Deleted) {
    for (const auto& result : list(*change.object, {"status", "allocation", "devices", "results"})) {
      if (const auto device = device_at(text(result, {"pool"}), text(result, {"device"})); device) {
        after.devices.insert(*device);
      }
    }
    for (const auto& pod : list(*change.object, {"status", "reservedFor"})) after.pods.insert(text(pod, {"uid"}));
  }
  auto& known = claims_[name];
  for (const auto& uid : known.pods) {
    for (const auto device : known.devices) {
      if (!after.pods.contains(uid) || !after.devices.contains(device)) take(device, uid);
    }
  }
  for (const auto& uid : after.pods) {
    for (const auto device : after.devices) give(device, uid);
    if (const auto pod = pods_.find(uid); pod != pods_.end()) update(pod->second);
  }
  if (after.devices.empty() && change.type == ChangeType::Deleted) {
    claims_.erase(name);
  } else {
    known = std::move(after);
  }
}

void Fleet::kill(Pod& pod) {
  const bool innocent = !is_stuck(pod);
  bool any_bad = !innocent;
  Cause cause = Cause::Device;
  if (!pod.devices.empty()) {
    const auto per_node = static_cast<std::size_t>(shape_.devices);
    const auto first = *pod.devices.begin() / per_node * per_node;
    cause = cause_at(first);
    for (auto device = first; device < first + per_node; ++device) any_bad = any_bad || is_bad(device);
  }
  ++counts_.killed[static_cast<std::size_t>(cause)];
  if (innocent) ++counts_.innocents[static_cast<std::size_t>(cause)];
  if (!any_bad) ++counts_.wrong;
  if (pod.slot < 0) return;
  auto& slot = slots_[static_cast<std::size_t>(pod.slot)];
  const auto lost = pod.worked % shape_.checkpoint;
  slot.done += pod.worked - lost;
  slot.last_loss = cause;
  ledger_.redo(lost * slot.what.gpus, cause);
}

void Fleet::pod_changed(const sim::Change& change) {
  const auto& object = *change.object;
  const auto uid = sim::uid_of(object);
  if (change.type == ChangeType::Deleted) {
    if (const auto found = pods_.find(uid); found != pods_.end()) {
      const auto devices = found->second.devices;
      pods_.erase(found);
      for (const auto device : devices) update(device);
    }
    return;
  }
  auto& pod = pods_[uid];
  if (pod.name.name.empty()) {
    pod.name = {sim::ns_of(object), sim::name_of(object)};
    const Json* owner = sim::controller_of(object);
    const auto slot = owner == nullptr ? slot_of_.end() : slot_of_.find(text(*owner, {"name"}));
    if (slot != slot_of_.end()) {
      pod.slot = static_cast<int>(slot->second);
      const auto& of = slots_[slot->second];
      // It goes on where the last one had saved.
      if (of.done > Millis::zero()) {
        const auto left = std::max<Millis>(of.length - of.done, Millis(1));
        cluster.store().edit(Res::Pods, pod.name, [&](Json& changed) {
          changed["metadata"]["annotations"][std::string(sim::kBehaviour) + "run-for-ms"] =
              std::to_string(left.count());
        });
      }
    }
  }
  const auto phase = text(object, {"status", "phase"});
  const bool was_running = pod.running && !pod.leaving;
  pod.running = phase == "Running";
  pod.leaving = pod.leaving || sim::is_deleting(object);
  update(pod);
  if (was_running && (phase == "Failed" || (phase == "Running" && pod.leaving))) kill(pod);
}

void Fleet::next_job(std::size_t index, double left) {
  auto& slot = slots_[index];
  slot_of_.erase(slot.job);
  slot.job = fmt::format("job-{}-{}", index, slot.number++);
  slot.length = std::chrono::duration_cast<Millis>(job_length(dice_.share()) * left);
  slot.done = Millis::zero();
  slot.failed = 0;
  slot.limit =
      shape_.backoff_limits[static_cast<std::size_t>(dice_.below(static_cast<int>(shape_.backoff_limits.size())))];
  slot_of_[slot.job] = index;
  sim::JobShape job;
  job.ns = kJobSpace;
  job.name = slot.job;
  job.backoff_limit = static_cast<int>(slot.limit);
  job.shape.node_selector = {{std::string(kPoolLabel), slot.what.pool}};
  job.shape.device_class = kDriver;
  job.shape.count = slot.what.gpus;
  job.shape.run_for = slot.length;
  cluster.create_job(std::move(job));
}

void Fleet::end_job(std::size_t index, bool lost) {
  auto& slot = slots_[index];
  ++(lost ? counts_.jobs_lost : counts_.jobs_done);
  // All that it had saved is worth nothing without a Job.
  if (lost) ledger_.redo(slot.done * slot.what.gpus, slot.last_loss);
  old_jobs_.emplace(now.mono + kKept, slot.job);
  next_job(index, 1);
}

void Fleet::job_changed(const sim::Change& change) {
  const auto& object = *change.object;
  const auto found = slot_of_.find(sim::name_of(object));
  if (found == slot_of_.end() || change.type == ChangeType::Deleted) return;
  auto& slot = slots_[found->second];
  const auto failed = number(object, {"status", "failed"});
  const auto limit = number(object, {"spec", "backoffLimit"}, slot.limit);
  counts_.retries += static_cast<int>((failed - slot.failed) - (limit - slot.limit));
  slot.failed = failed;
  slot.limit = limit;
  if (sim::condition_status(object, "Failed") == "True") return end_job(found->second, true);
  if (sim::condition_status(object, "Complete") == "True") end_job(found->second, false);
}

void Fleet::rule_changed(const sim::Change& change) {
  const auto& object = *change.object;
  const auto name = sim::name_of(object);
  const auto device =
      device_at(text(object, {"spec", "deviceSelector", "pool"}), text(object, {"spec", "deviceSelector", "device"}));
  if (!device) return;
  const Json* taint = field(object, {"spec", "taint"});
  if (change.type != ChangeType::Deleted && taint != nullptr && shuts(*taint)) {
    devices_[*device].rules.insert(name);
  } else {
    devices_[*device].rules.erase(name);
  }
  update(*device);
}

void Fleet::slice_changed(const sim::Change& change) {
  const auto node = text(*change.object, {"spec", "nodeName"});
  for (const auto& entry : list(*change.object, {"spec", "devices"})) {
    const auto device = device_at(node, text(entry, {"name"}));
    if (!device) continue;
    const auto taints = list(entry, {"taints"});
    const bool tainted = change.type != ChangeType::Deleted && std::ranges::any_of(taints, shuts);
    if (devices_[*device].slice_taint == tainted) continue;
    devices_[*device].slice_taint = tainted;
    update(*device);
  }
}

void Fleet::node_changed(const sim::Change& change) {
  const auto found = node_numbers_.find(sim::name_of(*change.object));
  if (found == node_numbers_.end()) return;
  const bool closed = (*change.object)["spec"].value("unschedulable", false) ||
                      std::ranges::any_of(list(*change.object, {"spec", "taints"}), shuts);
  auto& node = nodes_[static_cast<std::size_t>(found->second)];
  if (node.closed == closed) return;
  node.closed = closed;
  const auto devices = static_cast<std::size_t>(shape_.devices);
  for (std::size_t i = 0; i < devices; ++i) update(static_cast<std::size_t>(found->second) * devices + i);
}

}  // namespace dhc::year
