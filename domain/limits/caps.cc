#include "domain/limits/caps.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/wake.h"
#include "domain/cluster/workload.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/rejecting_node.h"
#include "domain/limits/brake.h"

namespace dhc {

namespace {

std::string words_of_cap(std::string_view name, const Cap& cap) {
  return fmt::format("caps.{} is {} percent and at least {}", name, cap.percent, cap.at_least);
}

HoldReason full(std::string message, std::optional<MonoTime> until = {}) {
  return {.reason = Reason::CapReached, .message = std::move(message), .until = until};
}

std::string way_out(std::string_view where) {
  return fmt::format("acknowledge what is repaired, or release the cap with the annotation {} on {}",
                     kCapReleaseAnnotation, where);
}

constexpr std::string_view kOnConfiguration = "the configuration's ConfigMap";

/// The devices that a share is taken of: so many at least are there.
struct Known {
  std::int64_t counted = 0;
  std::int64_t there = 0;
};
std::int64_t counted_of(const World& world, const std::string& scope, const std::string& node, std::int64_t at_least) {
  return std::max(known_cards(world, {.scope = scope, .node = node}), at_least);
}
/// For those who are refused, who are few.
Known known_of(const World& world, const std::string& scope, const std::string& node, std::int64_t at_least) {
  return {.counted = counted_of(world, scope, node, at_least),
          .there = std::max(cards_there(world, scope, node), at_least)};
}

/// Devices that have not been listed for long enough make a cap no larger, but they are not missing.
std::string words_of_proof(const Known& known) {
  if (known.there <= known.counted) return {};
  return fmt::format(" (the share is of {} until the others have been listed for {} minutes)", known.counted,
                     std::chrono::duration_cast<std::chrono::minutes>(kCardProof).count());
}

/// When the cap may be larger by time alone: once more devices count, if all that are there would make room.
std::optional<MonoTime> room_at(const World& world, const std::string& scope, const std::string& node, const Cap& cap,
                                const Known& known, std::int64_t wanted) {
  return wanted <= allowed_by(cap, known.there) ? world.cards().more_at(scope, node) : std::nullopt;
}

}  // namespace

std::int64_t allowed_by(const Cap& cap, std::int64_t known) {
  // Both are bounded: percent by the configuration, known by what fits into memory.
  return std::max(cap.at_least, cap.percent * known / 100);
}

void AskedTaints::drop_shown(const World& world, const CapBook& book) {
  std::erase_if(devices, [&](const auto& entry) {
    return book.out().contains(entry.first) && !world.inventory().named_rules_for(entry.first).empty();
  });
  std::erase_if(nodes, [&](const auto& entry) {
    const auto& [scope, name] = entry.first;
    const auto* node = world.node(name);
    return node != nullptr && our_taint_on(*node) && std::ranges::any_of(book.out(), [&](const auto& one) {
             return one.second.whole_node && one.second.node == name && one.first.scope == scope;
           });
  });
}

Caps::Caps(const CapInput& input) : input_(input), lost_(input.book.workloads()) {
  auto counts = std::make_shared<CapCounts>();
  filling_ = counts.get();
  at_first_ = std::move(counts);
  add_asked();
  add_charges();
  add_evictions();
  filling_ = nullptr;
}

template <class Look>
void Caps::for_each_count(const std::string& scope, const Look& look) const {
  for (const auto* counts : all_counts()) {
    if (const auto found = counts->find(scope); found != counts->end()) look(found->second);
  }
}

/// Taints that are asked for.
void Caps::add_asked() {
  for (const auto& [key, until] : input_.asked.devices) {
    if (input_.now.mono < until) take_taint(key, input_.world.node_of(key));
  }
  for (const auto& [place, until] : input_.asked.nodes) {
    if (input_.now.mono < until) take_node_taint(place.first, place.second);
  }
}

/// A charge counts while its eviction is on its way, or may have happened; before that it only permits one.
void Caps::add_charges() {
  for (const auto& [uid, charge] : input_.book.charges()) {
    const auto* attempt = input_.requests.eviction(uid);
    // It may have been charged for another bad device of the pod since.
    if (!charge.counted && may_stand(attempt, input_.now)) {
      take_eviction(attempt->key, charge.node, 1, {charge.workload});
    }
  }
}

bool Caps::has_counted(const std::string& pod_uid) const {
  const auto charge = input_.book.charges().find(pod_uid);
  if (charge == input_.book.charges().end()) return false;
  return charge->second.counted || may_stand(input_.requests.eviction(pod_uid), input_.now);
}

void Caps::add_evictions() {
  for (const auto& [scope, counts] : input_.book.evictions()) {
    auto& there = to_change(scope);
    for (const auto& count : counts) {
      if (input_.now.wall - count.last < CapBook::kDay) there.count_evictions(count.count, count.last);
    }
  }
}

CapCount::Against Caps::counted(const std::string& scope, const std::string& node, const DeviceKey& card) const {
  CapCount::Against all;
  for_each_count(scope, [&](const CapCount& count) {
    const auto known = count.against(node, card);
    all = {.node = all.node || known.node, .cluster = all.cluster || known.cluster};
  });
  return all;
}

std::int64_t Caps::out_on_node(const std::string& scope, const std::string& node) const {
  std::int64_t out = 0;
  for_each_count(scope, [&](const CapCount& count) { out += count.on_node(node); });
  return out;
}

bool Caps::is_whole(const std::string& scope, const std::string& node) const {
  bool is_whole = false;
  for_each_count(scope, [&](const CapCount& count) { is_whole = is_whole || count.whole_nodes().contains(node); });
  return is_whole;
}

std::int64_t Caps::evicted(const std::string& scope) const {
  std::int64_t pods = 0;
  for_each_count(scope, [&](const CapCount& count) { pods += count.evictions(); });
  return pods;
}

std::int64_t Caps::out_in_cluster(const std::string& scope, const std::string* but) const {
  std::int64_t out = 0;
  std::set<std::string_view> whole;
  for_each_count(scope, [&](const CapCount& count) {
    out += count.in_cluster();
    for (const auto& [node, reasons] : count.whole_nodes()) whole.insert(node);
  });
  const auto on = [&](const std::string& node) {
    std::int64_t there = 0;
    for_each_count(scope, [&](const CapCount& count) { there += count.in_cluster(node); });
    return there;
  };
  for (const auto& name : whole) {
    const std::string node(name);
    out -= on(node);
    // A device of the network has an empty node.
    if (but == nullptr || node != *but) out += std::max<std::int64_t>(cards_there(input_.world, scope, node), 1);
  }
  if (but != nullptr && !whole.contains(*but)) out -= on(*but);
  return out;
}

std::optional<HoldReason> Caps::refuses_device(const DeviceKey& key, const std::string& node) const {
  const auto& limits = input_.policy.limits;
  const auto known_as = counted(key.scope, node, input_.world.card_of(key));
  // A device of the network belongs to no node.
  if (!node.empty() && !known_as.node) {
    const auto out = out_on_node(key.scope, node);
    if (out + 1 > allowed_by(limits.cap_node, counted_of(input_.world, key.scope, node, out + 1))) {
      const auto known = known_of(input_.world, key.scope, node, out + 1);
      return full(fmt::format("{} of {} devices of {} on node {} are out of service on our account{}, {}: {}", out,
                              known.there, key.scope, node, words_of_proof(known),
                              words_of_cap("node", limits.cap_node), way_out("the node")),
                  room_at(input_.world, key.scope, node, limits.cap_node, known, out + 1));
    }
  }
  if (known_as.cluster || is_whole(key.scope, node)) return std::nullopt;
  return refuses_more(key.scope);
}

std::optional<HoldReason> Caps::refuses_more(const std::string& scope) const {
  const auto& cap = input_.policy.limits.cap_cluster;
  const auto out = out_in_cluster(scope, nullptr);
  if (out + 1 <= allowed_by(cap, counted_of(input_.world, scope, {}, out + 1))) return std::nullopt;
  const auto known = known_of(input_.world, scope, {}, out + 1);
  return full(
      fmt::format("{} of {} devices of {} in the cluster are out of service on our account{}, {}: {}", out, known.there,
                  scope, words_of_proof(known), words_of_cap("cluster", cap), way_out(kOnConfiguration)),
      room_at(input_.world, scope, {}, cap, known, out + 1));
}

std::optional<HoldReason> Caps::refuses_more_evictions(const std::string& scope) const { return refuses_day(scope, 1); }

std::int64_t Caps::most_a_day(const std::string& scope) const {
  return allowed_by(input_.policy.limits.cap_per_day, known_of(input_.world, scope, {}, 0).there);
}

std::optional<HoldReason> Caps::refuses_day(const std::string& scope, std::int64_t pods) const {
  const auto gone = evicted(scope);
  const auto& cap = input_.policy.limits.cap_per_day;
  // What counts already is asked for again.
  if (pods == 0 || gone + pods <= allowed_by(cap, counted_of(input_.world, scope, {}, 0))) return std::nullopt;
  const auto known = known_of(input_.world, scope, {}, 0);
  const auto allowed = allowed_by(cap, known.there);
  // No release and no wait makes room for what is larger than the cap.
  if (pods > allowed) {
    return full(
        fmt::format("{} on devices of {} would go at once, {} of {} known devices, which is {} a day: raise it, or "
                    "evict {} yourself",
                    pods == 1 ? "1 pod" : fmt::format("{} pods that share a claim", pods), scope,
                    words_of_cap("perDay", cap), known.there, allowed, pods == 1 ? "it" : "them"));
  }
  Wake until;
  until.note(room_at(input_.world, scope, {}, cap, known, gone + pods));
  for_each_count(scope, [&](const CapCount& count) {
    if (const auto& first = count.first_eviction())
      until.note(input_.now.mono + std::chrono::ceil<Millis>(*first + CapBook::kDay - input_.now.wall));
  });
  return full(fmt::format("{} pods on devices of {} were evicted within 24 h, {} of {} known devices{}: release the "
                          "cap with the annotation {} on {}, or wait",
                          gone, scope, words_of_cap("perDay", cap), known.there, words_of_proof(known),
                          kCapReleaseAnnotation, kOnConfiguration),
              until.at());
}

/// Who has room lets the device go: nobody's pod waits for what another's have used up.
std::optional<HoldReason> Caps::refuses_workloads(const DeviceKey& key, const Workloads& workloads) const {
  std::optional<HoldReason> first;
  for (const auto& workload : workloads) {
    auto hold = refuses_workload(input_.world.card_of(key), workload);
    if (!hold) return std::nullopt;
    if (!first) first = std::move(hold);
  }
  return first;
}

std::optional<HoldReason> Caps::refuses_workload(const DeviceKey& card, const std::string& workload) const {
  const auto& cap = input_.policy.limits.cap_owner_per_day;
  const auto lost = static_cast<std::int64_t>(lost_.count(workload, card.scope));
  if (lost + 1 <= cap.at_least || lost_.has(workload, card)) return std::nullopt;
  const auto held = devices_held_by(workload, card.scope, input_.world);
  if (lost + 1 <= allowed_by(cap, held)) return std::nullopt;
  std::optional<MonoTime> until;
  if (const auto room = lost_.room_at(workload, card.scope)) {
    until = input_.now.mono + std::chrono::ceil<Millis>(*room - input_.now.wall);
  }
  return full(fmt::format("{} devices of {} went out of service on our account within 24 h while pods of {} held them, "
                          "{} of the {} that they hold: look at what it runs, release the cap with the annotation {} "
                          "on {}, or wait",
                          lost, card.scope, words_of_workload(workload), words_of_cap("ownerDevicesPerDay", cap), held,
                          kCapReleaseAnnotation, kOnConfiguration),
              until);
}

std::optional<HoldReason> Caps::refuses_eviction(const DeviceKey& key, const std::string& node, std::int64_t pods,
                                                 const Workloads& workloads) const {
  if (auto hold = refuses_device(key, node)) return hold;
  if (auto hold = refuses_workloads(key, workloads)) return hold;
  return refuses_day(key.scope, pods);
}

void Caps::take_eviction(const DeviceKey& key, const std::string& node, std::int64_t pods, const Workloads& workloads) {
  take_device(key, node);
  to_change(key.scope).count_evictions(pods);
  for (const auto& workload : workloads) lost_.take(workload, input_.world.card_of(key), input_.now.wall);
}

std::optional<HoldReason> Caps::refuses_taint(const DeviceKey& key, const std::string& node) const {
  if (auto hold = refuses_device(key, node)) return hold;
  return refuses_holders(key);
}

std::optional<HoldReason> Caps::refuses_holders(const DeviceKey& key) const {
  return refuses_workloads(key, workloads_on(key, input_.world));
}

void Caps::take_taint(const DeviceKey& key, const std::string& node) {
  take_device(key, node);
  for (const auto& workload : workloads_on(key, input_.world)) {
    lost_.take(workload, input_.world.card_of(key), input_.now.wall);
  }
}

void Caps::take_device(const DeviceKey& key, const std::string& node) {
  const auto card = input_.world.card_of(key);
  const auto known = counted(key.scope, node, card);
  to_change(key.scope).count(node, card, {.node = !known.node, .cluster = !known.cluster});
}

std::optional<HoldReason> Caps::refuses_node_taint(const std::string& scope, const std::string& node) const {
  if (is_whole(scope, node)) return std::nullopt;
  const auto elsewhere = out_in_cluster(scope, &node);
  const auto here = cards_there(input_.world, scope, node);
  const auto& cap = input_.policy.limits.cap_cluster;
  if (elsewhere == 0) return std::nullopt;
  if (elsewhere + here <= allowed_by(cap, counted_of(input_.world, scope, {}, elsewhere + here))) return std::nullopt;
  const auto known = known_of(input_.world, scope, {}, elsewhere + here);
  return full(fmt::format("{} of {} devices of {} in the cluster are out of service on our account{}, and the node's "
                          "taint would take {} more, {}: {}",
                          elsewhere, known.there, scope, words_of_proof(known), here, words_of_cap("cluster", cap),
                          way_out(kOnConfiguration)),
              room_at(input_.world, scope, {}, cap, known, elsewhere + here));
}

std::vector<CapUse> Caps::in_use() const {
  std::vector<CapUse> list;
  std::set<std::string> scopes;
  for (const auto* counts : all_counts()) {
    for (const auto& [scope, count] : *counts) scopes.insert(scope);
  }
  for (const auto& scope : scopes) {
    const auto out = out_in_cluster(scope, nullptr);
    const auto evictions = evicted(scope);
    const auto known = known_of(input_.world, scope, {}, 0);
    const auto& limits = input_.policy.limits;
    if (out == 0 && evictions == 0) continue;
    list.push_back({.scope = scope,
                    .out = out,
                    .allowed = allowed_by(limits.cap_cluster, known.counted),
                    .known = known.there,
                    .evictions = evictions,
                    .allowed_evictions = allowed_by(limits.cap_per_day, known.counted)});
  }
  return list;
}

void Caps::take_node_taint(const std::string& scope, const std::string& node) { to_change(scope).count_node(node); }

}  // namespace dhc
