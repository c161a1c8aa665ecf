// The part of World that knows which replacements end before they run.
#include <algorithm>

#include "domain/cluster/disruption.h"
#include "domain/cluster/workload.h"
#include "domain/cluster/world.h"
#include "domain/contract/our_taint.h"

namespace dhc {

/// A node with our taint, if nothing else accepts the pod and the pod does not accept the taint.
const k8s::Node* World::only_tainted_place(const k8s::Pod& pod) const {
  const auto& terms = *pod.scheduling;
  if (k8s::tolerates(terms.tolerations, node_taint())) return nullptr;
  const auto found = std::ranges::find_if(
      our_tainted_nodes_, [&](const std::string& name) { return k8s::selects_node(terms, nodes_.at(name)); });
  if (found == our_tainted_nodes_.end()) return nullptr;
  const bool may_go_elsewhere = std::ranges::any_of(nodes_, [&](const auto& entry) {
    return !our_tainted_nodes_.contains(entry.first) && k8s::selects_node(terms, entry.second);
  });
  return may_go_elsewhere ? nullptr : &nodes_.at(*found);
}

void World::note_lost_replacement(const k8s::Pod& pod, const Now& now) {
  if (our_tainted_nodes_.empty() || !pod.meta.creation || !k8s::asks_for_devices(pod)) return;
  const bool rejected = was_rejected(pod) && our_tainted_nodes_.contains(pod.node_name);
  const auto* node = rejected ? &nodes_.at(pod.node_name) : pod.node_name.empty() ? only_tainted_place(pod) : nullptr;
  const auto owner = node == nullptr ? std::nullopt : top_subject_of(pod, *this);
  if (!owner) return;
  lost_replacements_.note(workload_of(pod, *this),
                          {.owner = *owner,
                           .pod = pod.meta.name,
                           .node = node->meta.name,
                           .made = ours(*pod.meta.creation),
                           .words = rejected ? "the kubelet of that node rejected it"
                                             : "no other node would take it, and it had ended before it ran"},
                          now);
}

}  // namespace dhc
