#include "reconcilers/taint/nodes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/enforcement.h"
#include "domain/incidents/card_memory.h"
#include "domain/limits/write_keys.h"

namespace dhc::taint {

namespace {

/// What the taint is for, in logs.
std::string what_of(const DeviceKey& key) { return key.scope.empty() ? to_string(key) : key.scope.str(); }

class NodePlanner {
 public:
  NodePlanner(const PlanInput& input, Speech& speech) : input_(input), speech_(speech) {}

  void run() {
    for (const auto& [place, found] : input_.node_cases) consider(place.first, place.second, found);
    for_each_record(input_, [&](const DeviceKey& key, const DeviceRecord& record) {
      if (key.source == DeviceKey::Source::RejectingNode) consider_rejecting(record);
      keep_without_policy(key, record);
    });
    const auto look = [&](const std::string& name, const k8s::Node& node) {
      if (our_taint_on(node) && !wanted_.contains(name)) untaint(node);
    };
    if (input_.focus == nullptr || input_.focus->all) {
      for (const auto& [name, node] : input_.world.nodes()) look(name, node);
    } else {
      for (const auto& name : input_.focus->nodes) {
        if (const auto* node = input_.world.node(name)) look(name, *node);
      }
    }
    for_each_record(input_, [&](const DeviceKey& key, const DeviceRecord& record) { say_standing(key, record); });
  }

 private:
  void consider(const std::string& name, const std::string& scope, const NodeCase& found) {
    const auto* node = input_.world.node(name);
    if (node == nullptr) return;
    if (found.mode == Mode::Off) return;
    if (!found.enough) return below(scope, found);
    keep_tainted(*node, scope, found,
                 fmt::format("{} of {} devices of {} on the node are bad; its taint takes {} healthy ones out of use",
                             found.bad_cards, found.known, scope, found.known - found.bad_cards));
  }

  /// A node whose kubelet rejects one pod after the other.
  void consider_rejecting(const DeviceRecord& record) {
    const auto* policy = policy_of(record, input_.policy);
    const auto* node = input_.world.node(record.key.place);
    if (!record.is_open() || record.is_acknowledged() || policy == nullptr || node == nullptr) return;
    if (!policy->job_retry || !policy->job_retry->taints_rejecting_node) return;
    const auto mode = mode_on(policy, input_.policy, input_.world, record.key);
    const NodeCase found{.bad = {&record},
                         .policy = policy,
                         .mode = mode,
                         .known = 0,
                         .enough = true,
                         .observed = mode != effective_mode(policy, input_.policy)};
    if (found.mode == Mode::Off) return;
    keep_tainted(
        *node, record.key.scope, found,
        fmt::format("its kubelet rejects pods that ask for {}: new ones would go there to die; the taint keeps "
                    "off every new pod",
                    record.key.scope));
  }

  void keep_tainted(const k8s::Node& node, const std::string& scope, const NodeCase& found, const std::string& cost) {
    const auto& name = node.meta.name;
    wanted_.insert(name);
    if (our_taint_on(node)) {
      for (const auto* record : found.bad) {
        speech_.say(*record, until_recovered(*record, input_, Reason::Tainted, cost));
      }
      return;
    }
    if (auto hold = why_not(node, scope, found, cost)) {
      for (const auto* record : found.bad) speech_.say(*record, *hold);
      return;
    }
    if (sent_.insert(name).second) {
      speech_.act(PatchNodeTaint{.node = name,
                                 .uid = node.meta.uid,
                                 .resource_version = node.meta.resource_version,
                                 .add = true,
                                 .has_taints = !node.taints.empty(),
                                 .index = 0,
                                 .device = scope,
                                 .policy = found.policy->name});
    }
    for (const auto* record : found.bad) say(*record, Reason::Tainting, cost);
  }

  /// A policy that has gone does not take the taint along.
  void keep_without_policy(const DeviceKey& key, const DeviceRecord& record) {
    if (!record.is_open() || !record.ours.node.stands() || record.is_acknowledged()) return;
    if (policy_of(record, input_.policy) != nullptr) return;
    const auto name = input_.world.node_of(key);
    const auto* node = input_.world.node(name);
    if (node == nullptr || !our_taint_on(*node)) return;
    wanted_.insert(name);
    speech_.say(record, until_recovered(record, input_, Reason::Tainted, "its policy is gone, the node's taint stays"));
  }

  std::optional<HoldReason> why_not(const k8s::Node& node, const std::string& scope, const NodeCase& found,
                                    const std::string& cost) {
    if (found.mode != Mode::Enforce) {
      return HoldReason{.reason = Reason::WouldTaint,
                        .message = (found.observed ? "where enforceOn holds, the node would be tainted: "
                                                   : "an enforcing policy would taint the node: ") +
                                   cost,
                        .until = {}};
    }
    // One device that may be tainted is enough: the node is tainted once for all.
    std::optional<HoldReason> first;
    for (const auto* record : found.bad) {
      auto hold = speech_.not_now(*record);
      if (!hold) hold = input_.caps.refuses_holders(record->key);
      if (!hold) {
        first.reset();
        break;
      }
      if (!first) first = std::move(hold);
    }
    if (first) return first;
    if (auto hold = speech_.held_back(node_write_key(node.meta.name), node.meta.resource_version,
                                      PatchNodeTaint::asks_for(true, node.meta.uid)))
      return hold;
    for (const auto* record : found.bad) speech_.ask_again(*record);
    if (auto hold = speech_.takes_node_from_caps(scope, node.meta.name)) return hold;
    if (sent_.contains(node.meta.name)) return std::nullopt;
    return speech_.takes_taint();
  }

  /// The policy does not ask for the node, or not yet.
  void below(const std::string& scope, const NodeCase& found) {
    for (const auto* record : found.bad) {
      if (const auto seen = taken_out(*record, found)) {
        say(*record, Reason::TaintNotNeeded, *seen);
      } else if (found.policy->taint->node) {
        const auto& taint = *found.policy->taint;
        say(*record, Reason::NodeBelowThreshold,
            fmt::format("{} of {} devices of {} on the node are bad, nodeAtLeast is {} and {} percent", found.bad_cards,
                        found.known, scope, taint.node_at_least_devices, taint.node_at_least_percent));
      } else if (record->key.source == DeviceKey::Source::Dra) {
        say(*record, Reason::TaintUnsupported,
            "the server has no DeviceTaintRules, and the policy says node: Never: nothing keeps new pods off");
      }
    }
  }

  /// **Source:** seen on 1.37.1: the kubelet never gave an unhealthy plugin device to a new pod once the node's status
  /// showed the loss.
  std::optional<std::string> taken_out(const DeviceRecord& record, const NodeCase& found) const {
    if (record.key.source != DeviceKey::Source::Plugin) return std::nullopt;
    const auto* book = input_.world.resource_book(record.key.place, record.key.scope);
    if (book == nullptr) return std::nullopt;
    const auto& numbers = *book;
    if (numbers.allocatable > numbers.capacity - static_cast<std::int64_t>(found.bad.size())) return std::nullopt;
    return fmt::format("no taint is needed: the kubelet no longer hands it out ({} of {} {} allocatable)",
                       numbers.allocatable, numbers.capacity, record.key.scope);
  }

  void untaint(const k8s::Node& node) {
    const auto& name = node.meta.name;
    const auto at = *our_taint_on(node);
    const auto about = records_on(name);
    const bool is_ours = node.taints[at] == node_taint();
    if (!is_ours || about.empty()) return;  // an operator's, or not seen as tainted yet
    const bool only_rejects = std::ranges::all_of(about, [](const auto* record) { return !record->key.is_device(); });
    std::string why = only_rejects ? "no policy asks for it any more" : "too few of its devices are bad";
    Mode mode = Mode::Off;
    for (const auto* record : about) {
      if (record->is_acknowledged()) why = "an operator acknowledged it";
      const auto* end = record->incident.end();
      if (end != nullptr && !end->why.empty()) why = end->why;
      mode = std::max(mode, effective_mode(policy_of(*record, input_.policy), input_.policy));
    }
    const auto say_all = [&](const HoldReason& hold) {
      for (const auto* record : about) speech_.say(*record, hold);
    };
    if (mode != Mode::Enforce) return say_all({.reason = Reason::WouldUntaint, .message = why, .until = {}});
    speech_.untaint(name);
    for (const auto* record : about) {
      const bool noted = !record->is_open() || record->is_acknowledged() || record->ours.node.is_leaving();
      if (!noted) return say_all({.reason = Reason::Untainting, .message = "first it is written down", .until = {}});
      if (auto hold = speech_.unsaved(*record)) return say_all(*hold);
    }
    if (auto hold = speech_.held_back(node_write_key(name), node.meta.resource_version,
                                      PatchNodeTaint::asks_for(false, node.meta.uid))) {
      if (hold->reason == Reason::Tainting) hold->reason = Reason::Untainting;
      return say_all(*hold);
    }
    speech_.act(PatchNodeTaint{.node = name,
                               .uid = node.meta.uid,
                               .resource_version = node.meta.resource_version,
                               .add = false,
                               .has_taints = true,
                               .index = at,
                               .device = what_of(about.front()->key),
                               .policy = about.front()->past.policy});
    say_all({.reason = Reason::Untainting, .message = why, .until = {}});
  }

  /// The records for which the node was tainted.
  std::vector<const DeviceRecord*> records_on(const std::string& name) const {
    std::vector<const DeviceRecord*> found;
    for (const auto& [key, record] : input_.incidents.records()) {
      if (record.ours.node.stands() && input_.world.node_of(key) == name) found.push_back(&record);
    }
    return found;
  }

  void say_standing(const DeviceKey& key, const DeviceRecord& record) {
    if (!needs_node_taint(input_.world, key)) return;
    if (!record.is_open()) return say_ended(record);
    if (record.is_acknowledged()) {
      speech_.say(record, until_recovered(record, input_, Reason::Acknowledged,
                                          "an operator vouches for the device: not tainted for it in this incident"));
    }
    const auto* policy = policy_of(record, input_.policy);
    if (record.is_quarantined() && policy != nullptr && policy->taint) {
      speech_.ask_again(record);  // so do those of its card's other devices
      say(record, Reason::Quarantined,
          fmt::format("{} incidents{}: held until an operator writes the annotation {} on the node", record.past.count,
                      with_card_words(input_.incidents, record, input_.world, input_.policy, input_.now.wall),
                      kAcknowledgeAnnotation));
    }
  }

  /// Only where the node was tainted for it.
  void say_ended(const DeviceRecord& record) {
    if (!record.incident.was_tainted() || record.ours.node.stands()) return;
    speech_.say_ended(record);
  }

  void say(const DeviceRecord& record, Reason reason, std::string message) {
    speech_.say(record, {.reason = reason, .message = std::move(message), .until = {}});
  }

  const PlanInput& input_;
  Speech& speech_;
  std::set<std::string> wanted_;
  std::set<std::string> sent_;
};

}  // namespace

void plan_nodes(const PlanInput& input, Speech& speech) { NodePlanner(input, speech).run(); }

}  // namespace dhc::taint
