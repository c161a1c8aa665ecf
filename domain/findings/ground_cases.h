#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "domain/findings/suspects.h"

namespace dhc {

/// In how many nodes devices must have broken for a release to be suspected.
inline constexpr std::size_t kFewestNodesOfRelease = 3;

/// What speaks against each of these nodes and releases, by the test that tells a guilty workload: a node breaks what
/// hardware breaks anywhere, by its share of what is held. What is put down to a workload or image counts for nothing;
/// a device that broke elsewhere, or under another release, too is itself the cause. Of the first device that a
/// workload, or an image, breaks nobody knows that it breaks any: of each further one counts how much of what it holds
/// is at the node, or under the release. So does of a node, for a release. Points into `onsets`.
[[nodiscard]] std::map<std::string, CaseAgainst> cases_against_grounds(
    const std::vector<DeviceOnset>& onsets, const std::map<OwnerInScope, Suspicion>& suspicions,
    const std::string& scope, const std::set<std::string>& names);

/// Whether a case with so many devices at the least is enough for a suspicion; of a release, on as many nodes.
[[nodiscard]] bool is_enough_against_ground(const std::string& ground, const CaseAgainst& found, std::size_t least);

/// The evidence, a sentence.
[[nodiscard]] std::string words_of_ground_case(const std::string& ground, const std::string& scope,
                                               const CaseAgainst& found);

}  // namespace dhc
