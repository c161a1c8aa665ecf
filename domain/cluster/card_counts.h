#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "base/now.h"
#include "domain/contract/device_key.h"

namespace dhc {

/// How long cards must have been listed without a break before they count: a list of a moment proves nothing.
inline constexpr Millis kCardProof = std::chrono::minutes(10);
/// How long they count after that: a driver or plugin that restarts, or is replaced, lists nothing meanwhile.
inline constexpr Millis kCardMemory = std::chrono::hours(24);

/// Who lists cards: a driver in a pool, or a resource's plugin on a node.
struct CardLister {
  DeviceKey::Source source = DeviceKey::Source::Dra;
  std::string place;  ///< Pool or node.
  std::string scope;  ///< Driver or resource.
  friend auto operator<=>(const CardLister&, const CardLister&) = default;
};

/// The physical cards that one lists now.
struct ListedCards {
  std::int64_t cards = 0;
  std::int64_t replicas = 1;  ///< As how many devices a card is offered, as far as the devices' IDs have told.
  std::int64_t held = 0;      ///< That running pods hold now: they are there, whatever the list says.
};

/// Physical cards of a driver or resource.
struct CardCount {
  std::int64_t known = 0;  ///< Of which a share is taken.
  std::int64_t there = 0;  ///< Those, or more that are listed now: what a taint on their node takes out of service.
};

/// How many cards there are, over time: neither a long list of a moment nor an empty one changes what a share is taken
/// of.
class CardCounts {
 public:
  /// What is listed now; `node` is empty for cards of no node. Safe to repeat.
  void note(const CardLister& lister, const std::string& node, const ListedCards& listed, const Now& now);
  /// All that plugins list on the node, by resource: what is not in it lists nothing.
  void note_node(const std::string& node, const std::map<std::string, ListedCards>& listed, const Now& now);
  void forget(const CardLister& lister);
  /// The node is gone, and its plugins with it.
  void forget_node(const std::string& node);

  /// What follows by time alone. What was noted before the first call counts at once, but only while it is listed
  /// until it has been for `kCardProof`: nothing is known of the time before.
  void settle(const Now& now);
  /// When `settle` would change something; none: never.
  [[nodiscard]] std::optional<MonoTime> next_change_at() const;
  /// When more cards of a driver or resource will count on a node, or (empty) in the cluster, if they stay listed;
  /// none: all that are listed count.
  [[nodiscard]] std::optional<MonoTime> more_at(const std::string& scope, const std::string& node) const;

  /// Of a driver or resource on a node, or (empty) in the cluster.
  [[nodiscard]] CardCount of(DeviceKey::Source source, const std::string& scope, const std::string& node) const;
  /// How many nodes have cards of this device-plugin resource that count.
  [[nodiscard]] std::int64_t nodes_with(const std::string& resource) const;

 private:
  struct Entry {
    std::string node;
    ListedCards listed;
    std::int64_t known = 0;
    std::optional<MonoTime> proven_at;  // none: `known` has stood for long enough
    // While another number is listed: since when without a break, and the one of it that is next to `known`.
    std::optional<MonoTime> other_since;
    bool is_more = false;
    std::int64_t other = 0;
  };
  using Entries = std::map<CardLister, Entry>;

  static void follow(Entry& entry, const Now& now);
  static void correct(Entry& entry, const ListedCards& listed);
  static MonoTime change_at(const Entry& entry);
  void put(const CardLister& lister, Entry entry);
  void add(const CardLister& lister, const Entry& entry, std::int64_t sign);

  Entries entries_;
  std::set<CardLister> changing_;
  std::map<std::tuple<DeviceKey::Source, std::string, std::string>, CardCount> totals_;  // by scope and node
  bool has_begun_ = false;
};

}  // namespace dhc
