#include "domain/cluster/card_counts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/wake.h"

namespace dhc {

namespace {

/// All of one node, whatever becomes of their entries meanwhile.
template <class Entries>
std::vector<CardLister> plugins_of(const Entries& entries, const std::string& node) {
  std::vector<CardLister> found;
  for (auto at = entries.lower_bound({.source = DeviceKey::Source::Plugin, .place = node, .scope = {}});
       at != entries.end() && at->first.source == DeviceKey::Source::Plugin && at->first.place == node; ++at) {
    found.push_back(at->first);
  }
  return found;
}

}  // namespace

void CardCounts::note(const CardLister& lister, const std::string& node, const ListedCards& seen, const Now& now) {
  // Who may lie about one may lie about the other: what pods hold has to be proven as well.
  auto listed = seen;
  listed.cards = std::max(seen.cards, seen.held);
  const auto found = entries_.find(lister);
  const bool is_same = found != entries_.end() && found->second.node == node;
  Entry entry = is_same ? found->second : Entry{};
  entry.node = node;
  if (listed.replicas > entry.listed.replicas) correct(entry, listed);
  entry.listed = listed;
  if (!has_begun_) {
    entry.known = listed.cards;
    entry.proven_at = now.mono + kCardProof;
  }
  follow(entry, now);
  put(lister, std::move(entry));
}

void CardCounts::note_node(const std::string& node, const std::map<std::string, ListedCards>& listed, const Now& now) {
  for (const auto& lister : plugins_of(entries_, node)) {
    if (!listed.contains(lister.scope)) note(lister, node, {}, now);
  }
  for (const auto& [resource, cards] : listed) {
    note({.source = DeviceKey::Source::Plugin, .place = node, .scope = resource}, node, cards, now);
  }
}

void CardCounts::forget(const CardLister& lister) {
  const auto found = entries_.find(lister);
  if (found == entries_.end()) return;
  add(lister, found->second, -1);
  changing_.erase(lister);
  entries_.erase(found);
}

void CardCounts::forget_node(const std::string& node) {
  for (const auto& lister : plugins_of(entries_, node)) forget(lister);
}

void CardCounts::settle(const Now& now) {
  has_begun_ = true;
  std::vector<CardLister> due;
  for (const auto& lister : changing_) {
    if (change_at(entries_.at(lister)) <= now.mono) due.push_back(lister);
  }
  for (const auto& lister : due) {
    auto entry = entries_.at(lister);
    follow(entry, now);
    put(lister, std::move(entry));
  }
}

std::optional<MonoTime> CardCounts::next_change_at() const {
  Wake wake;
  for (const auto& lister : changing_) wake.note(change_at(entries_.at(lister)));
  return wake.at();
}

std::optional<MonoTime> CardCounts::more_at(const std::string& scope, const std::string& node) const {
  Wake wake;
  for (const auto& lister : changing_) {
    if (lister.scope != scope) continue;
    const auto& entry = entries_.at(lister);
    if (entry.is_more && (node.empty() || entry.node == node)) wake.note(change_at(entry));
  }
  return wake.at();
}

std::int64_t CardCounts::nodes_with(const std::string& resource) const {
  constexpr auto kPlugin = DeviceKey::Source::Plugin;
  std::int64_t nodes = 0;
  // The first is the cluster's.
  for (auto at = totals_.upper_bound({kPlugin, resource, {}}); at != totals_.end(); ++at) {
    if (std::get<0>(at->first) != kPlugin || std::get<1>(at->first) != resource) break;
    if (at->second.known > 0) ++nodes;
  }
  return nodes;
}

CardCount CardCounts::of(DeviceKey::Source source, const std::string& scope, const std::string& node) const {
  const auto found = totals_.find({source, scope, node});
  return found == totals_.end() ? CardCount{} : found->second;
}

/// A number counts that has been listed, or not undercut, for long enough; a greater one until it was out of sight for
/// long.
void CardCounts::follow(Entry& entry, const Now& now) {
  const auto cards = entry.listed.cards;
  if (entry.proven_at && now.mono >= *entry.proven_at) entry.proven_at.reset();
  if (entry.proven_at) entry.known = std::min(entry.known, cards);
  if (cards == entry.known) return entry.other_since.reset();
  const bool is_more = cards > entry.known;
  if (!entry.other_since || entry.is_more != is_more) {
    entry.other_since = now.mono;
    entry.is_more = is_more;
    entry.other = cards;
  }
  entry.other = is_more ? std::min(entry.other, cards) : std::max(entry.other, cards);
  if (now.mono < change_at(entry)) return;
  entry.known = entry.other;
  entry.other_since.reset();
  if (cards == entry.known) return;
  entry.other_since = now.mono;
  entry.other = cards;
}

/// What was taken for several cards were replicas of one.
void CardCounts::correct(Entry& entry, const ListedCards& listed) {
  const auto corrected = [&](std::int64_t cards) {
    const auto fewer = (cards * entry.listed.replicas + listed.replicas - 1) / listed.replicas;
    return std::min(cards, std::max(fewer, listed.cards));
  };
  entry.known = corrected(entry.known);
  entry.other = corrected(entry.other);
}

MonoTime CardCounts::change_at(const Entry& entry) {
  return *entry.other_since + (entry.is_more ? kCardProof : kCardMemory);
}

void CardCounts::put(const CardLister& lister, Entry entry) {
  forget(lister);
  if (entry.known == 0 && entry.listed.cards == 0) return;
  add(lister, entry, 1);
  if (entry.other_since) changing_.insert(lister);
  entries_.emplace(lister, std::move(entry));
}

void CardCounts::add(const CardLister& lister, const Entry& entry, std::int64_t sign) {
  const auto count = [&](const std::string& node) {
    const auto place = totals_.try_emplace({lister.source, lister.scope, node}).first;
    auto& total = place->second;
    total.known += sign * entry.known;
    total.there += sign * std::max(entry.known, entry.listed.cards);
    if (total.there == 0) totals_.erase(place);
  };
  count({});
  if (!entry.node.empty()) count(entry.node);
}

}  // namespace dhc
