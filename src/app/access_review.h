#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/request.h"

namespace dhc {

/// One verb that we need, and what for.
struct NeededVerb {
  std::string group;
  std::string resource;
  std::string subresource;
  std::string verb;
  std::string needed_by;  ///< `watch`, `opt-out`, `evict`, `condition`, `jobRetry`, `events` and so on.
  std::string ns;         ///< Empty: in all namespaces, or cluster-scoped.
  std::string name;       ///< Empty: all objects.
  friend bool operator==(const NeededVerb&, const NeededVerb&) = default;
};

/// Where the configuration lives, if in a ConfigMap.
struct ConfigMapName {
  std::string ns;
  std::string name;
  friend bool operator==(const ConfigMapName&, const ConfigMapName&) = default;
};

/// Every verb that these settings need. Enforce mode adds evictions and conditions, `events` adds Events,
/// `election` the Lease in the own namespace, `status` the status ConfigMap there.
[[nodiscard]] std::vector<NeededVerb> needed_verbs(Mode mode, bool events, const ConfigMapName* config_map,
                                                   const std::string& own_namespace, bool election,
                                                   bool status = false);

/// What the policies that enforce need in order to hand nodes over by a condition; empty: none of them does so.
[[nodiscard]] std::vector<NeededVerb> condition_verbs(const Policy& policy);

/// What making this object needs, by what the server calls its collection: `gpuresets`.
[[nodiscard]] std::vector<NeededVerb> object_verbs(const HandOverResource& object, const std::string& plural);

/// The objects by which policies that enforce hand nodes over, each kind and namespace once.
[[nodiscard]] std::vector<HandOverResource> handed_resources(const Policy& policy);

/// Asks the server whether we may. Needs no right itself. **Source:** authorization.k8s.io/v1, seen on 1.37.1.
[[nodiscard]] k8s::Request build_access_review(const NeededVerb& needed);

/// `status.allowed` of the answer; Malformed if it is not there.
[[nodiscard]] Result<bool> parse_access_review(std::string_view body);

/// `forbidden: pods/eviction create (needed by: evict)`.
[[nodiscard]] std::string forbidden_line(const NeededVerb& needed);

}  // namespace dhc
