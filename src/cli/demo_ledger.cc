#include "cli/demo_ledger.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "simulator/controllers/state.h"

namespace dhc::cli {

namespace {
using sim::Json;
using sim::Res;

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// The devices that a DRA claim of the pod was given.
void add_claimed(const sim::Cluster& cluster, const Json& pod, std::set<DemoDevice>& devices) {
  for (const auto& use : sim::list(pod, {"spec", "resourceClaims"})) {
    const auto claim = cluster.get(Res::Claims, sim::ns_of(pod), sim::claim_name_of(pod, use));
    if (claim == nullptr) continue;
    for (const auto& result : sim::list(*claim, {"status", "allocation", "devices", "results"})) {
      devices.insert({.node = sim::text(pod, {"spec", "nodeName"}),
                      .device = sim::text(result, {"device"}),
                      .kind = sim::text(result, {"driver"})});
    }
  }
}
}  // namespace

void DemoSum::add(const DemoSum& other) {
  broke += other.broke;
  reported += other.reported;
  replaced += other.replaced;
  leaving += other.leaving;
  well += other.well;
  kept += other.kept;
  taints += other.taints;
  untaints += other.untaints;
  credits += other.credits;
  std::ranges::copy(other.reasons, std::back_inserter(reasons));
  std::ranges::copy(other.wrong, std::back_inserter(wrong));
}

std::string DemoSum::text() const {
  std::string out =
      fmt::format("{} of devices in use. By their kubelets' reports {} a bad device:\n", plural(broke, "fault"),
                  reported == 1 ? "1 pod held" : fmt::format("{} pods held", reported));
  const auto row = [&out](std::size_t count, std::string_view what) {
    if (count > 0) out += fmt::format("{:5} {}\n", count, what);
  };
  row(replaced, "evicted; the replacement runs on another device");
  row(leaving, "evicted; the replacement does not run yet");
  row(well, "not evicted: its device is healthy again, or it ended by itself");
  row(kept, "not evicted, for a reason:");
  for (const auto& reason : reasons) out += "        " + reason + "\n";
  out += fmt::format("{} created, {} removed. {} {} given back to Jobs.\n", plural(taints, "taint"), untaints, credits,
                     credits == 1 ? "retry" : "retries");
  for (const auto& one : wrong) out += "  WRONG: " + one + "\n";
  out += wrong.empty() ? "It adds up: each pod is accounted for, no other was evicted, none twice.\n"
                       : "That is NOT what should have happened.\n";
  return out;
}

void DemoLedger::befell(const DemoEvent& event) {
  const bool broke = event.what == DemoEvent::What::Broke;
  broke_ += broke ? event.holders.size() : 0;
  for (const auto& device : event.devices) {
    if (broke) {
      broken_.insert(device);
    } else {
      broken_.erase(device);
    }
  }
}

DemoLedger::Pod DemoLedger::pod_of(const sim::Cluster& cluster, const Json& pod) {
  Pod out;
  out.name = sim::name_of(pod);
  if (const auto* owner = sim::controller_of(pod); owner != nullptr) out.owner = sim::text(*owner, {"uid"});
  out.runs = sim::text(pod, {"status", "phase"}) == "Running";
  out.is_leaving = sim::is_deleting(pod) || sim::is_terminal(pod);
  std::set<DemoDevice> claimed;
  add_claimed(cluster, pod, claimed);
  out.devices = claimed;
  const auto node = sim::text(pod, {"spec", "nodeName"});
  for (const auto& container : sim::list(pod, {"status", "containerStatuses"})) {
    for (const auto& entry : sim::list(container, {"allocatedResourcesStatus"})) {
      const auto kind = sim::text(entry, {"name"});
      for (const auto& one : sim::list(entry, {"resources"})) {
        const auto id = sim::text(one, {"resourceID"});
        DemoDevice device{.node = node, .device = id, .kind = kind};
        // The kubelet names a claim's device by its CDI ID, which ends in the device's own name.
        for (const auto& own : claimed) {
          if (id.ends_with("-" + own.device)) device = own;
        }
        out.devices.insert(device);
        if (sim::text(one, {"health"}) == "Unhealthy") out.bad.insert(device);
      }
    }
  }
  return out;
}

std::vector<DemoReplaced> DemoLedger::look(const sim::Cluster& cluster) {
  // First by what was seen before: the evicted pod may be gone by now.
  std::map<std::string, Pod> seen;
  for (const auto& [name, pod] : cluster.store().all(Res::Pods)) seen[sim::uid_of(*pod)] = pod_of(cluster, *pod);
  for (const auto& [uid, pod] : seen) {
    if (!pod.bad.empty() && !pod.is_leaving) reported_.insert_or_assign(uid, pod);
  }
  count_evictions(cluster);
  pods_ = std::move(seen);
  count_writes(cluster);
  return match_replacements();
}

void DemoLedger::count_evictions(const sim::Cluster& cluster) {
  const auto names = cluster.evictions();
  for (auto i = evicted_.size(); i < names.size(); ++i) {
    const auto name = names[i].substr(names[i].find('/') + 1);
    Evicted evicted;
    evicted.pod.name = name;
    for (const auto& [uid, pod] : pods_) {
      evicted.before.insert(uid);
      if (pod.name != name) continue;
      evicted.uid = uid;
      evicted.pod = pod;
    }
    if (const auto reported = reported_.find(evicted.uid); reported != reported_.end()) evicted.pod = reported->second;
    evicted_.push_back(std::move(evicted));
  }
}

void DemoLedger::count_writes(const sim::Cluster& cluster) {
  std::set<std::string> rules;
  for (const auto& [name, rule] : cluster.store().all(Res::TaintRules)) rules.insert(name.name);
  for (const auto& rule : rules) taints_ += rules_.contains(rule) ? 0U : 1U;
  for (const auto& rule : rules_) untaints_ += rules.contains(rule) ? 0U : 1U;
  rules_ = std::move(rules);
  for (const auto& [name, job] : cluster.store().all(Res::Jobs)) {
    const auto limit = sim::number(*job, {"spec", "backoffLimit"});
    auto& before = limits_.try_emplace(sim::uid_of(*job), limit).first->second;
    if (limit > before) credits_ += static_cast<std::size_t>(limit - before);
    before = limit;
  }
}

std::vector<DemoReplaced> DemoLedger::match_replacements() {
  std::vector<DemoReplaced> out;
  for (auto& evicted : evicted_) {
    if (!evicted.replacement.empty() || evicted.pod.owner.empty()) continue;
    for (const auto& [uid, pod] : pods_) {
      const bool fits = pod.owner == evicted.pod.owner && pod.runs && !pod.is_leaving && !pod.devices.empty();
      if (!fits || evicted.before.contains(uid) || !replacements_.insert(uid).second) continue;
      evicted.replacement = uid;
      evicted.is_on_broken_device =
          std::ranges::any_of(pod.devices, [&](const DemoDevice& device) { return broken_.contains(device); });
      out.push_back({.pod = pod.name, .on = *pod.devices.begin()});
      break;
    }
  }
  return out;
}

DemoSum DemoLedger::sum(std::span<const Verdict> verdicts) const {
  DemoSum sum{.broke = broke_,
              .reported = reported_.size(),
              .taints = taints_,
              .untaints = untaints_,
              .credits = credits_,
              .reasons = {},
              .wrong = {}};
  std::set<std::string> once;
  for (const auto& evicted : evicted_) {
    const auto& name = evicted.pod.name;
    if (!reported_.contains(evicted.uid)) {
      sum.wrong.push_back(name + " was evicted, and nobody had reported a bad device of it");
    } else if (!once.insert(evicted.uid).second) {
      sum.wrong.push_back(name + " was evicted twice");
    } else {
      ++(evicted.replacement.empty() ? sum.leaving : sum.replaced);
      if (evicted.is_on_broken_device) sum.wrong.push_back(name + "'s replacement runs on a broken device");
    }
  }
  for (const auto& [uid, then] : reported_) {
    if (once.contains(uid)) continue;
    const auto now = pods_.find(uid);
    if (now == pods_.end() || now->second.is_leaving || now->second.bad.empty()) {
      ++sum.well;
      continue;
    }
    std::vector<std::string_view> reasons;
    for (const auto& one : verdicts) {
      if (one.subject.kind == "Pod" && one.subject.uid == uid) reasons.push_back(to_string(one.reason));
    }
    ++sum.kept;
    if (reasons.empty()) {
      sum.wrong.push_back(then.name + " is on a bad device, and the controller says nothing of it");
    } else {
      sum.reasons.push_back(fmt::format("{}: {}", then.name, fmt::join(reasons, ", ")));
    }
  }
  return sum;
}

}  // namespace dhc::cli
