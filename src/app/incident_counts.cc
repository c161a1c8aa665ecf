#include "app/incident_counts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dhc {

namespace {
/// Those with the most bad devices; of equals the first by name, so that the choice stands still.
std::set<std::string> worst_nodes(const std::map<std::string, std::size_t>& by_node) {
  std::vector<std::pair<std::string, std::size_t>> sorted(by_node.begin(), by_node.end());
  std::ranges::sort(
      sorted, [](const auto& a, const auto& b) { return std::tie(b.second, a.first) < std::tie(a.second, b.first); });
  if (sorted.size() > kMostIncidentNodes) sorted.resize(kMostIncidentNodes);
  std::set<std::string> worst;
  for (auto& [node, count] : sorted) worst.insert(std::move(node));
  return worst;
}
}  // namespace

std::vector<IncidentCount> count_incidents(const DeviceRecords& records, const World& world) {
  std::vector<std::pair<const DeviceRecord*, std::string>> open;
  std::map<std::string, std::size_t> by_node;
  for (const auto& [key, record] : records) {
    if (!record.is_open()) continue;
    open.emplace_back(&record, node_of(record, world));
    ++by_node[open.back().second];
  }
  const auto named = worst_nodes(by_node);
  std::map<std::tuple<std::string, std::string, std::string, std::string>, IncidentCount> rows;
  for (const auto& [record, node] : open) {
    const bool is_dra = record->key.source == DeviceKey::Source::Dra;
    IncidentCount row{.policy = record->past.policy,
                      .driver = is_dra ? record->key.scope.str() : std::string(),
                      .resource = is_dra ? std::string() : record->key.scope.str(),
                      .node = named.contains(node) ? node : std::string()};
    auto& kept = rows.try_emplace({row.policy, row.driver, row.resource, row.node}, row).first->second;
    ++kept.open;
    kept.quarantined += record->is_quarantined() ? 1U : 0U;
  }
  std::vector<IncidentCount> counts;
  for (auto& [key, row] : rows) counts.push_back(std::move(row));
  return counts;
}

}  // namespace dhc
