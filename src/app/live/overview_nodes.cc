#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/live/overview.h"
#include "base/json_text.h"
#include "domain/cluster/node_departure.h"
#include "domain/contract/our_taint.h"

namespace dhc {

namespace {

/// Forty thousand names a turn: a tree of JSON values for each would cost the loop ten times as much.
void append_string(std::string& out, std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, is_plain)) {
    out += json_text(nlohmann::ordered_json(std::string(text)));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

/// The devices of one resource or driver in one place.
struct Group {
  std::string text;  ///< Devices, as elements of a JSON array.
  std::string pool;  ///< Of a driver; empty: a device plugin's.
  bool dra = false;
  const ResourceBook* book = nullptr;
  bool contested = false;
  bool published = true;
};

/// By scope and, of a driver, pool.
using Groups = std::map<std::pair<std::string, std::string>, Group>;

/// A pool by driver and name.
using PoolView = std::pair<std::string_view, std::string_view>;
struct PoolViewHash {
  std::size_t operator()(const PoolView& pool) const {
    return std::hash<std::string_view>()(pool.first) * 31 + std::hash<std::string_view>()(pool.second);
  }
};

class NodesText {
 public:
  explicit NodesText(const OverviewInput& input) : input_(input) {}

  void write(Overview& overview) {
    add_pools();
    add_held();
    add_books();
    for (auto& [node, groups] : nodes_) overview.emplace(std::string(kNodeEntry) + node, text_of(node, groups));
  }

 private:
  /// A device with what is known of its health, if anything is.
  struct Seen {
    const DeviceKey* key = nullptr;
    const DeviceState* state = nullptr;
  };

  void add_pools() {
    const auto& tracker = input_.world.tracker();
    if (input_.nodes == nullptr) in_pools_.reserve(tracker.devices().size());
    for (const auto& [name, pool] : input_.world.inventory().pools()) {
      if (!is_wanted(pool.node)) {
        elsewhere_.insert({name.first, name.second});
        continue;
      }
      auto& group = nodes_[pool.node][name];
      group.dra = true;
      group.pool = name.second;
      group.contested = pool.contested;
      group.published = pool.published;
      DeviceKey key = DeviceKey::dra(name.first, name.second, {});
      for (const auto& [device, published] : pool.devices) {
        key.device = device;
        const auto* state = tracker.find(key);
        if (state != nullptr) in_pools_.insert(state);
        add(group, {.key = &key, .state = state});
      }
    }
  }

  /// Held, and of no pool that is known: what a plugin offers has a name only while a pod holds it. Forty thousand are
  /// sorted node by node, because one sorted tree of them costs more than all the rest.
  void add_held() {
    std::unordered_map<std::string, std::vector<Seen>> held;
    const auto add_to_node = [&](const Seen& seen) {
      if (auto node = input_.world.node_of(*seen.key); is_wanted(node)) held[std::move(node)].push_back(seen);
    };
    const auto& tracker = input_.world.tracker();
    for (const auto& [key, state] : tracker.devices()) {
      if (!is_surely_elsewhere(key) && !in_pools_.contains(&state)) add_to_node({.key = &key, .state = &state});
    }
    for (const auto& [key, record] : input_.incidents.records()) {
      const bool is_kept = record.is_open() && key.is_device() && tracker.find(key) == nullptr && !is_in_pool(key);
      if (is_kept) add_to_node({.key = &key});
    }
    for (auto& [node, devices] : held) {
      std::ranges::sort(devices, {}, [](const Seen& seen) -> const DeviceKey& { return *seen.key; });
      add_to(nodes_[node], devices);
    }
  }

  void add_to(Groups& groups, const std::vector<Seen>& devices) const {
    const Seen* before = nullptr;
    Group* group = nullptr;
    for (const auto& seen : devices) {
      const auto& key = *seen.key;
      const bool is_same = before != nullptr && before->key->source == key.source && before->key->scope == key.scope &&
                           before->key->place == key.place;
      if (!is_same) {
        const bool is_plugins = key.source == DeviceKey::Source::Plugin;
        const auto pool = is_plugins ? std::string() : key.place.str();
        group = &groups[{key.scope, pool}];
        group->dra = !is_plugins;
        group->pool = pool;
      }
      add(*group, seen);
      before = &seen;
    }
  }

  void add_books() {
    for (const auto& [node, book] : input_.world.books()) {
      if (!is_wanted(node)) continue;
      for (const auto& [resource, resource_book] : book.resources()) {
        if (resource_book.capacity == 0 && resource_book.largest_capacity == 0 && resource_book.held.total == 0)
          continue;
        nodes_[node][{resource, {}}].book = &resource_book;
      }
    }
  }

  [[nodiscard]] bool is_wanted(const std::string& node) const {
    return input_.nodes == nullptr || input_.nodes->contains(node);
  }

  /// Forty thousand are passed over, and no more than a few looked up.
  [[nodiscard]] bool is_surely_elsewhere(const DeviceKey& key) const {
    if (input_.nodes == nullptr) return false;
    if (key.source == DeviceKey::Source::Plugin) return !input_.nodes->contains(key.place);
    return elsewhere_.contains({key.scope, key.place});
  }

  [[nodiscard]] bool is_in_pool(const DeviceKey& key) const {
    if (key.source != DeviceKey::Source::Dra) return false;
    const auto& pools = input_.world.inventory().pools();
    const auto pool = pools.find({key.scope, key.place});
    return pool != pools.end() && pool->second.devices.contains(key.device);
  }

  void add(Group& group, const Seen& seen) const {
    const auto& key = *seen.key;
    const auto* state = seen.state;
    auto& out = group.text;
    if (!out.empty()) out += ',';
    out += R"({"id":)";
    append_string(out, key.device);
    if (state != nullptr && state->has_source) {
      out += R"(,"health":)";
      append_string(out, k8s::to_string(state->health));
    }
    if (state != nullptr && !state->holders.empty()) add_holders(out, state->holders);
    if (const auto* record = input_.incidents.find(key)) {
      const auto probation = record->incident.probation_until();
      if (record->is_open()) {
        out += record->is_acknowledged()  ? R"(,"incident":"acknowledged")"
               : record->is_quarantined() ? R"(,"incident":"quarantined")"
                                          : R"(,"incident":"open")";
      } else if (probation && input_.now.wall < *probation) {
        out += R"(,"incident":"probation")";
      }
    }
    if (key.source == DeviceKey::Source::Dra) add_taint(out, key);
    out += '}';
  }

  void add_holders(std::string& out, std::span<const SharedText> holders) const {
    out += R"(,"pods":[)";
    bool is_first = true;
    for (const auto& uid : holders) {
      const auto* record = input_.world.pod(uid);
      if (record == nullptr) continue;
      if (!std::exchange(is_first, false)) out += ',';
      append_string(out, record->pod.meta.ns + "/" + record->pod.meta.name);
    }
    out += ']';
  }

  void add_taint(std::string& out, const DeviceKey& key) const {
    const auto& inventory = input_.world.inventory();
    const auto is_ours = [&] {
      if (inventory.rules().empty()) return false;
      const auto* rule = inventory.rule_named_for(key);
      if (rule == nullptr) rule = inventory.rule_named(card_rule_name(key));
      return rule != nullptr && is_our_rule(*rule);
    };
    if (is_ours()) {
      out += R"(,"taint":"ours")";
    } else if (inventory.tainted_by_driver(key).value_or(false)) {
      out += R"(,"taint":"driver")";
    }
  }

  [[nodiscard]] std::string text_of(const std::string& node, const Groups& groups) const {
    std::string out = R"({"name":)";
    append_string(out, node);
    const auto* found = input_.world.node(node);
    if (!node.empty() && found == nullptr) out += R"(,"gone":true)";
    if (found != nullptr) {
      if (!found->ready) out += R"(,"notReady":true)";
      if (found->unschedulable) out += R"(,"cordoned":true)";
      if (our_taint_on(*found)) out += R"(,"tainted":true)";
      if (const auto why = why_leaving(*found)) {
        out += R"(,"leaving":)";
        append_string(out, *why);
      }
    }
    out += R"(,"groups":[)";
    bool is_first = true;
    for (const auto& [name, group] : groups) {
      if (!std::exchange(is_first, false)) out += ',';
      append(out, name.first, group);
    }
    return out + "]}";
  }

  static void append(std::string& out, const std::string& scope, const Group& group) {
    out += R"({"scope":)";
    append_string(out, scope);
    if (group.dra) {
      out += R"(,"pool":)";
      append_string(out, group.pool);
    }
    if (group.contested) out += R"(,"contested":true)";
    if (!group.published) out += R"(,"unpublished":true)";
    if (group.book != nullptr) {
      fmt::format_to(std::back_inserter(out), R"(,"capacity":{},"allocatable":{})", group.book->capacity,
                     group.book->allocatable);
    }
    out += R"(,"devices":[)";
    out += group.text;
    out += "]}";
  }

  const OverviewInput& input_;
  std::map<std::string, Groups> nodes_;                        // empty: of no node
  std::unordered_set<PoolView, PoolViewHash> elsewhere_ = {};  // pools of nodes that are not wanted
  std::unordered_set<const DeviceState*> in_pools_ = {};       // those that a pool has shown
};
}  // namespace

std::set<std::string> busy_nodes(const World& world, const IncidentStore& incidents) {
  std::set<std::string> nodes;
  for (const auto& key : world.tracker().not_healthy()) nodes.insert(world.node_of(key));
  for (const auto& [key, record] : incidents.records()) {
    if (record.is_open()) nodes.insert(world.node_of(key));
  }
  return nodes;
}

void add_nodes(Overview& overview, const OverviewInput& input) { NodesText(input).write(overview); }

}  // namespace dhc
