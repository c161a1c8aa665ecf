#include "domain/limits/cap_count.h"

namespace dhc {

void CapCount::count(const std::string& node, const DeviceKey& card, Against against) {
  if (!against.node && !against.cluster) return;
  auto& here = nodes_[node];
  auto& reasons = here.cards[card];
  if (against.node && reasons.node++ == 0) ++here.on_node;
  if (against.cluster && reasons.cluster++ == 0) {
    ++here.in_cluster;
    ++in_cluster_;
  }
}

void CapCount::uncount(const std::string& node, const DeviceKey& card, Against against) {
  if (!against.node && !against.cluster) return;
  const auto here = nodes_.find(node);
  const auto found = here->second.cards.find(card);
  auto& reasons = found->second;
  if (against.node && --reasons.node == 0) --here->second.on_node;
  if (against.cluster && --reasons.cluster == 0) {
    --here->second.in_cluster;
    --in_cluster_;
  }
  if (reasons.node == 0 && reasons.cluster == 0) here->second.cards.erase(found);
  if (here->second.cards.empty()) nodes_.erase(here);
}

void CapCount::uncount_node(const std::string& node) {
  const auto found = whole_nodes_.find(node);
  if (--found->second == 0) whole_nodes_.erase(found);
}

void CapCount::count_evictions(std::int64_t pods, WallTime at) {
  evictions_ += pods;
  if (!first_eviction_) first_eviction_ = at;
}

CapCount::Against CapCount::against(const std::string& node, const DeviceKey& card) const {
  const auto here = nodes_.find(node);
  if (here == nodes_.end()) return {};
  const auto found = here->second.cards.find(card);
  if (found == here->second.cards.end()) return {};
  return {.node = found->second.node > 0, .cluster = found->second.cluster > 0};
}

std::int64_t CapCount::on_node(const std::string& node) const {
  const auto here = nodes_.find(node);
  return here == nodes_.end() ? 0 : here->second.on_node;
}

std::int64_t CapCount::in_cluster(const std::string& node) const {
  const auto here = nodes_.find(node);
  return here == nodes_.end() ? 0 : here->second.in_cluster;
}

}  // namespace dhc
