#include "domain/cluster/node_books.h"

#include <algorithm>

#include "base/wake.h"

namespace dhc {

namespace {

void note(std::optional<Moment>& since, bool holds, const Now& now) {
  if (!holds) {
    since.reset();
  } else if (!since) {
    since = moment_of(now);
  }
}

}  // namespace

bool NodeBook::update(const k8s::Node* node, const std::map<std::string, HeldDevices, std::less<>>& held,
                      const Now& now) {
  note(cordon_seen_at_, node != nullptr && node->unschedulable, now);
  if (node == nullptr) {
    resources_.clear();
    uid_.clear();
    return true;
  }
  bool is_other = uid_ != node->meta.uid || ready_ != node->ready || boot_id_ != node->boot_id;
  uid_ = node->meta.uid;
  ready_ = node->ready;
  if (node->boot_id != boot_id_) {
    if (!boot_id_.empty()) booted_at_ = now.wall;
    boot_id_ = node->boot_id;
    for (auto& [name, book] : resources_) book.largest_capacity = 0;
  }
  const auto known = resources_.size();
  for (const auto& amount : node->capacity) resources_[amount.resource];
  for (const auto& [name, count] : held) resources_[name];
  for (auto& [name, book] : resources_) {
    const bool was_dead = book.plugin_dead;
    const bool had_any = book.capacity > 0;
    const bool gave_any = book.allocatable > 0;
    const auto fell_at = book.fell_at;
    const auto rose_at = book.rose_at;
    book.capacity = k8s::amount_of(node->capacity, name);
    book.allocatable = k8s::amount_of(node->allocatable, name);
    book.largest_capacity = std::max(book.largest_capacity, book.capacity);
    const auto count = held.find(name);
    book.held = count == held.end() ? HeldDevices{} : count->second;
    if (book.capacity > 0 && book.capacity != book.replicas_capacity) {
      book.replicas_capacity = book.capacity;
      book.replicas = 1;
    }
    book.replicas = std::max(book.replicas, book.held.replicas);
    book.plugin_dead = book.held.total > 0 && (book.capacity == 0 || book.capacity < book.held.total);
    if (book.plugin_dead) book.rose_at.reset();
    if (was_dead && !book.plugin_dead) book.rose_at = now.mono;
    if (book.capacity == 0 && (had_any || (book.plugin_dead && !book.fell_at))) book.fell_at = moment_of(now);
    is_other = is_other || was_dead != book.plugin_dead || gave_any != (book.allocatable > 0) ||
               fell_at != book.fell_at || rose_at != book.rose_at;
    note(book.silent_since, book.held.total - book.held.unhealthy > book.allocatable, now);
    note(book.vanished_since, book.capacity < book.largest_capacity, now);
  }
  std::erase_if(resources_,
                [](const auto& entry) { return entry.second.largest_capacity == 0 && entry.second.held.total == 0; });
  return is_other || resources_.size() != known;
}

ListedCards ResourceBook::cards() const {
  const auto cards_of = [&](std::int64_t devices) { return (devices + replicas - 1) / replicas; };
  return {.cards = cards_of(capacity), .replicas = replicas, .held = std::max(cards_of(held.total), held.cards)};
}

std::int64_t ResourceBook::largest_known() const {
  const auto listed = (std::max(largest_capacity, held.total) + replicas - 1) / replicas;
  return std::max(listed, held.cards);
}

bool NodeBook::healthy_is_believable(std::string_view resource, const Now& now) const {
  const auto found = resources_.find(resource);
  if (found == resources_.end()) return true;
  const auto& book = found->second;
  return !book.plugin_dead && (!book.rose_at || now.mono - *book.rose_at >= kPluginSettle);
}

bool NodeBook::is_suspicious() const {
  return std::ranges::any_of(
      resources_, [](const auto& entry) { return entry.second.silent_since || entry.second.vanished_since; });
}

std::optional<MonoTime> NodeBook::next_change_at(const Now& now) const {
  Wake wake;
  for (const auto& [name, book] : resources_) {
    if (book.rose_at) wake.note_after(now.mono, *book.rose_at + kPluginSettle);
  }
  return wake.at();
}

}  // namespace dhc
