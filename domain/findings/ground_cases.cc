#include "domain/findings/ground_cases.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/ground_names.h"

namespace dhc {

namespace {

/// A device that broke, and who may have broken it and had broken another before: of the first nobody knows that it
/// breaks any.
struct BrokenAt {
  const DeviceOnset* onset;
  std::set<std::string_view> grounds;    // what it had in common each time it broke
  std::vector<std::string_view> again;   // workloads
  std::vector<std::string_view> images;  // likewise
  bool is_node_again = false;
};

bool is_put_down(const DeviceOnset& onset, const std::map<OwnerInScope, Suspicion>& suspicions) {
  const auto is_suspected = [&](const auto& entry) { return suspicions.contains({entry.first, onset.card.scope}); };
  return onset.excused || std::ranges::any_of(onset.workloads, is_suspected) ||
         std::ranges::any_of(onset.images, is_suspected);
}

std::vector<BrokenAt> broken_at(const std::vector<DeviceOnset>& onsets,
                                const std::map<OwnerInScope, Suspicion>& suspicions, const std::string& scope) {
  std::vector<BrokenAt> broken;
  std::unordered_map<DeviceKey, std::size_t, DeviceKeyHash> known;
  std::set<std::string_view> owners;
  std::set<std::string_view> nodes;
  for (const auto& onset : onsets) {
    if (onset.card.scope != scope || onset.grounds.empty() || is_put_down(onset, suspicions)) continue;
    const auto [at, is_new] = known.try_emplace(onset.card, broken.size());
    if (!is_new) {
      std::erase_if(broken[at->second].grounds,
                    [&](std::string_view name) { return !onset.grounds.contains(std::string(name)); });
      continue;
    }
    BrokenAt one{.onset = &onset, .grounds = {}, .again = {}, .images = {}};
    for (const auto& [ground, share] : onset.grounds) one.grounds.insert(ground);
    for (const auto& [workload, share] : onset.workloads) {
      if (!owners.insert(workload).second) one.again.push_back(workload);
    }
    for (const auto& [image, share] : onset.images) {
      if (!owners.insert(image).second) one.images.push_back(image);
    }
    one.is_node_again = !onset.node.empty() && !nodes.insert(onset.node).second;
    broken.push_back(std::move(one));
  }
  return broken;
}

/// How likely each of them had to be at this one.
std::vector<double> chances_at(const std::string& ground, const CaseAgainst& found,
                               const std::vector<BrokenAt>& broken) {
  std::map<std::string_view, double> of_owner;
  std::set<std::string_view> nodes;
  const auto note = [&](const auto& owners, double share) {
    for (const auto& [who, of_all] : owners) {
      auto& known = of_owner[who];
      known = std::max(known, share);
    }
  };
  for (const auto* onset : found.onsets) {
    const auto& share = onset->grounds.at(ground);
    note(onset->workloads, share.workload);
    note(onset->images, share.image);
    nodes.insert(onset->node);
  }
  const bool is_release = release_of_ground(ground).has_value();
  std::vector<double> chances;
  for (const auto& one : broken) {
    double chance = found.share;
    for (const auto* owners : {&one.again, &one.images}) {
      for (const auto who : *owners) {
        const auto there = of_owner.find(who);
        if (there != of_owner.end()) chance = std::max(chance, there->second);
      }
    }
    if (is_release && one.is_node_again && nodes.contains(one.onset->node)) chance = 1;
    chances.push_back(chance);
  }
  return chances;
}

std::set<std::string_view> nodes_of(const CaseAgainst& found) {
  std::set<std::string_view> nodes;
  for (const auto* onset : found.onsets) nodes.insert(onset->node);
  return nodes;
}

std::string count_of(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::map<std::string, CaseAgainst> cases_against_grounds(const std::vector<DeviceOnset>& onsets,
                                                         const std::map<OwnerInScope, Suspicion>& suspicions,
                                                         const std::string& scope, const std::set<std::string>& names) {
  const auto broken = broken_at(onsets, suspicions, scope);
  std::map<std::string, CaseAgainst> cases;
  for (const auto& one : broken) {
    for (const auto& [ground, share] : one.onset->grounds) {
      if (!names.contains(ground) || !one.grounds.contains(ground)) continue;
      auto& found = cases[ground];
      found.share = std::max(found.share, share.scope);
      found.onsets.push_back(one.onset);
    }
  }
  weigh(cases, [&](const std::string& ground, const CaseAgainst& found) { return chances_at(ground, found, broken); });
  return cases;
}

bool is_enough_against_ground(const std::string& ground, const CaseAgainst& found, std::size_t least) {
  const bool is_spread = !release_of_ground(ground) || nodes_of(found).size() >= kFewestNodesOfRelease;
  return is_spread && is_enough(found, least);
}

std::string words_of_ground_case(const std::string& ground, const std::string& scope, const CaseAgainst& found) {
  std::set<std::string_view> workloads;
  for (const auto* onset : found.onsets) {
    for (const auto& [workload, share] : onset->workloads) workloads.insert(workload);
  }
  const auto broke = fmt::format("since {} {} devices of {} broke", format_rfc3339(found.onsets.front()->at),
                                 found.onsets.size(), scope);
  const auto under = count_of(workloads.size(), "workload");
  if (release_of_ground(ground)) {
    return fmt::format("{} on {} where it runs, under {}; it serves at most {:.1f} percent of those that are held: {}",
                       broke, count_of(nodes_of(found).size(), "node"), under, found.share * 100,
                       words_of_devices(found));
  }
  return fmt::format(
      "{} there under {}, where others held {} that were well; it has at most {:.1f} percent of those that are held: "
      "{}",
      broke, under, found.onsets.back()->well, found.share * 100, words_of_devices(found));
}

}  // namespace dhc
