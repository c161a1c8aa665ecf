#include "domain/findings/rollouts.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/printable.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestCommonWords = 200;

std::string without_figures(std::string_view words) {
  std::string text;
  for (const char c : words) {
    const bool is_figure = c >= '0' && c <= '9';
    if (!is_figure) text += c;
    if (is_figure && !text.ends_with('#')) text += '#';
  }
  return text;
}

struct RolloutGroup {
  std::unordered_set<std::string_view> nodes;
  std::size_t pods = 0;
  std::size_t waiting = 0;
  const AffectedPod* last = nullptr;
};

}  // namespace

std::uint64_t rollout_cause(const std::optional<Rollout>& rollout, std::string_view scope, std::string_view said,
                            WallTime since) {
  // What was bad before its driver began anew waits as well, and is not that one's fault.
  const bool is_its = rollout && rollout->owner.kind == "DaemonSet" && since + Seconds(1) >= rollout->began;
  if (!is_its) return 0;
  const auto hash = stable_hash(fmt::format("{}|{}|{}", rollout->owner.uid, scope, without_figures(said)));
  return hash == 0 ? 1 : hash;
}

Rollouts find_rollouts(const std::vector<AffectedPod>& affected_pods, const World& world, const Now& now) {
  std::map<std::uint64_t, RolloutGroup> groups;
  for (const auto& affected : affected_pods) {
    if (affected.rollout_cause == 0) continue;
    auto& group = groups[affected.rollout_cause];
    group.nodes.insert(affected.pod().node_name);
    ++group.pods;
    if (now.mono < affected.opens_at) ++group.waiting;
    if (group.last == nullptr || group.last->since < affected.since) group.last = &affected;
  }
  Rollouts found;
  for (const auto& [cause, group] : groups) {
    if (group.nodes.size() < kRolloutNodes) continue;
    auto rollout = world.rollout_of(group.last->key);
    if (!rollout) continue;
    const auto since = world.ours(world.revision_began(*rollout));
    found.emplace(cause, RolloutDamage{.pods = group.pods,
                                       .nodes = group.nodes.size(),
                                       .waiting = group.waiting,
                                       .scope = group.last->key.scope,
                                       .said = group.last->said,
                                       .rollout = *std::move(rollout),
                                       .since = since});
  }
  return found;
}

std::string words_of(const RolloutDamage& damage) {
  auto words =
      fmt::format("devices of {} pods on {} nodes went bad with the same words while its pods began anew there",
                  damage.pods, damage.nodes);
  if (!damage.rollout.revision.empty()) words += fmt::format(" (revision {})", damage.rollout.revision);
  words +=
      damage.waiting == 0
          ? std::string("; they are still bad, and count: look at the driver before the devices")
          : fmt::format("; of {} no incident opens until {} s after that: stop the roll-out and look at the driver",
                        damage.waiting, std::chrono::duration_cast<Seconds>(kRolloutHold).count());
  return damage.said.empty() ? words : words + ": " + printable_cut(damage.said, kLongestCommonWords);
}

}  // namespace dhc
