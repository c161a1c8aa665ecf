#include "tests/support/core/taken_out.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "simulator/api/field.h"

namespace dhc::test {

namespace {
using sim::Json;
using sim::Res;
using sim::text;

constexpr Millis kUntilDeleted = std::chrono::minutes(2);

/// The time of an operator's annotation; one ahead of the clock has no effect.
std::optional<WallTime> said(std::string_view value, const Now& now) {
  const auto at = parse_rfc3339(value);
  return at && *at <= now.wall ? at : std::nullopt;
}

std::optional<WallTime> said_on(const Json* object, std::string_view annotation, const Now& now) {
  if (object == nullptr) return std::nullopt;
  return said(text(*object, {"metadata", "annotations", annotation}), now);
}

}  // namespace

void TakenOut::etcd_restored() {
  begun_anew();
  seen_rv_ = 0;
  std::erase_if(out_, [](const auto& entry) { return entry.first.source == DeviceKey::Source::Plugin; });
  is_restored_ = true;
}

void TakenOut::evicted(const DeviceKey& key, const Now& now) {
  // Of a driver's device the rule says it; one without a rule is not known here when it is well again.
  if (key.source != DeviceKey::Source::Plugin) return;
  auto card = key;
  card.device = card_of_plugin_id(key.device).id;
  out_.try_emplace(card, Out{.at = now.wall});
}

void TakenOut::read_rules(const Now& now) {
  std::set<DeviceKey> standing;
  for (const auto& [name, rule] : cluster_.store().all(Res::TaintRules)) {
    if (!name.name.starts_with(kRulePrefix) || text(*rule, {"spec", "taint", "effect"}) != "NoSchedule") continue;
    const auto of = [&](std::string_view part) { return text(*rule, {"spec", "deviceSelector", part}); };
    // With the card that counts already.
    if (sim::field(*rule, {"metadata", "annotations", kSameCardAnnotation}) != nullptr) continue;
    auto key = DeviceKey::dra(of("driver"), of("pool"), of("device"));
    const auto is_acknowledged = sim::field(*rule, {"metadata", "annotations", kAcknowledgeAnnotation}) != nullptr;
    out_.try_emplace(key, Out{.at = now.wall, .counts = !is_restored_});
    if (is_restored_ || is_acknowledged) out_.at(key).counts = false;
    standing.insert(std::move(key));
  }
  is_restored_ = false;
  std::erase_if(out_, [&](const auto& entry) {
    return entry.first.source == DeviceKey::Source::Dra && !standing.contains(entry.first);
  });
}

void TakenOut::read_nodes() {
  const auto is_ours = [](const Json& taint) { return text(taint, {"key"}) == kTaintKey; };
  const auto& nodes = cluster_.store().changes(Res::Nodes);
  for (auto change = nodes.rbegin(); change != nodes.rend() && change->rv > seen_rv_; ++change) {
    if (std::ranges::any_of(sim::list(*change->object, {"spec", "taints"}), is_ours)) {
      tainted_nodes_.insert(sim::name_of(*change->object));
    }
  }
  seen_rv_ = cluster_.store().rv();
  std::erase_if(out_, [&](const auto& entry) {
    const auto& key = entry.first;
    if (key.source != DeviceKey::Source::Plugin) return false;
    const auto node = cluster_.get(Res::Nodes, {}, key.place);
    return node == nullptr || sim::number(*node, {"status", "allocatable", key.scope}) >=
                                  sim::number(*node, {"status", "capacity", key.scope});
  });
}

std::map<TakenOut::Place, std::int64_t> TakenOut::count(const Policy& policy, const Now& now) const {
  std::map<Place, std::int64_t> counts;
  const auto released = said(policy.cap_release, now);
  for (const auto& [key, out] : out_) {
    // In the simulator a driver's pool has the name of its node.
    const auto node = cluster_.get(Res::Nodes, {}, key.place);
    const auto acknowledged = said_on(node.get(), kAcknowledgeAnnotation, now);
    const bool is_whole = key.source == DeviceKey::Source::Plugin && tainted_nodes_.contains(key.place);
    if (is_whole || !out.counts || (acknowledged && out.at <= *acknowledged)) continue;
    const auto of_node = said_on(node.get(), kCapReleaseAnnotation, now);
    if (!of_node || out.at > *of_node) ++counts[{key.scope, key.place}];
    if (!released || out.at > *released) ++counts[{key.scope, {}}];
  }
  return counts;
}

void TakenOut::look(const Policy& policy, const Known& known, bool calm, const Now& now) {
  read_rules(now);
  read_nodes();
  const auto counts = count(policy, now);
  for (const auto& [place, out] : counts) {
    const auto& cap = place.second.empty() ? policy.limits.cap_cluster : policy.limits.cap_node;
    const auto devices = std::max(known(place.first, place.second), out);
    const auto most = std::max(cap.at_least, cap.percent * devices / 100);
    const auto before = before_.find(place);
    const bool is_more = out > (before == before_.end() ? 0 : before->second);
    if (out <= most) {
      too_many_.erase(place);
    } else if (is_more) {
      too_many_.try_emplace(place, now.mono);
    }
    const auto since = too_many_.find(place);
    if (since == too_many_.end()) continue;
    if (!calm) since->second = now.mono;
    if (now.mono - since->second < kUntilDeleted) continue;
    broken_.push_back(fmt::format("I18: {} of {} devices of {} on {} are out of service on our account, its cap is {}",
                                  out, devices, place.first, place.second.empty() ? "all nodes" : place.second, most));
    too_many_.erase(since);
  }
  std::erase_if(too_many_, [&](const auto& entry) { return !counts.contains(entry.first); });
  before_ = counts;
}

}  // namespace dhc::test
