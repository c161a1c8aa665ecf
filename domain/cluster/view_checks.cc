#include "domain/cluster/view_checks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "domain/cluster/resolution.h"
#include "k8s-client/protocol/version_order.h"

namespace dhc {

namespace {

/// In words; the kinds that are read before an eviction.
std::string name_of_read(const FreshRead& read) {
  if (read.kind == k8s::Kind::ResourceSlice) return "slice " + read.name;
  const auto* kind = read.kind == k8s::Kind::ResourceClaim ? "claim" : read.kind == k8s::Kind::Job ? "Job" : "pod";
  return fmt::format("{} {}/{}", kind, read.ns, read.name);
}

/// What is held now of the object that was held when the read was sent; null: no such object any more.
const k8s::Meta* held_now(const FreshRead& read, const World& world) {
  if (read.kind == k8s::Kind::Pod) {
    const auto* record = world.pod(read.held_uid);
    return record == nullptr ? nullptr : &record->pod.meta;
  }
  if (read.kind == k8s::Kind::ResourceSlice) {
    const auto* slice = world.inventory().slice_with(read.held_uid);
    return slice == nullptr ? nullptr : &slice->meta;
  }
  if (read.kind == k8s::Kind::Job) {
    const auto* record = world.job(read.ns, read.held_uid);
    return record == nullptr ? nullptr : &record->job.meta;
  }
  const auto* claim = world.standing_claim(claim_key(read.ns, read.name));
  return claim == nullptr || claim->meta.uid != read.held_uid ? nullptr : &claim->meta;
}

bool has_caught_up(const FreshRead& read, const World& world) {
  const auto* held = held_now(read, world);
  if (held == nullptr) return true;
  return read.uid == read.held_uid && !k8s::is_older_version(held->resource_version, read.version);
}

std::string why_behind(const FreshRead& read) {
  const auto what = name_of_read(read);
  const auto seconds = std::chrono::duration_cast<Seconds>(ViewChecks::kCatchUp).count();
  if (read.uid == read.held_uid) {
    return fmt::format("a read showed {} at resourceVersion {}, {} s later the watch is still at an older one", what,
                       read.version, seconds);
  }
  return fmt::format("a read showed that {} is gone, {} s later the watch has not delivered it", what, seconds);
}

}  // namespace

void ViewChecks::note(const FreshRead& read, const Now& now) {
  if (read.uid == read.held_uid && k8s::is_older_version(read.version, read.held_version)) {
    wrong_.try_emplace(read.kind, fmt::format("a read showed {} at resourceVersion {}, it was at {}",
                                              name_of_read(read), read.version, read.held_version));
    return;
  }
  if (waiting_.size() >= kMostWaiting) return;
  // The first one stands: what it showed is what the watch is longest behind.
  waiting_.try_emplace({read.kind, read.held_uid}, Waiting{.read = read, .due = now.mono + kCatchUp});
}

std::vector<ViewDoubt> ViewChecks::take(const World& world, const Now& now) {
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& [read, due] = entry.second;
    if (has_caught_up(read, world)) return true;
    if (now.mono < due) return false;
    wrong_.try_emplace(read.kind, why_behind(read));
    return true;
  });
  std::vector<ViewDoubt> doubts;
  for (auto& [kind, why] : std::exchange(wrong_, {})) doubts.push_back({.kind = kind, .why = std::move(why)});
  return doubts;
}

std::optional<MonoTime> ViewChecks::next_change_at() const {
  std::optional<MonoTime> next;
  for (const auto& [key, waiting] : waiting_) next = std::min(next.value_or(waiting.due), waiting.due);
  return next;
}

}  // namespace dhc
