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
  std::string_view group;
  std::string_view resource;
  std::string_view subresource;
  std::string_view verb;
  std::string_view needed_by;  ///< `watch`, `opt-out`, `evict`, `condition`, `jobRetry`, `events` and so on.
  std::string ns;              ///< Empty: in all namespaces, or cluster-scoped.
  std::string name;            ///< Empty: all objects.
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

/// Asks the server whether we may. Needs no right itself. **Source:** authorization.k8s.io/v1, seen on 1.37.1.
[[nodiscard]] k8s::Request build_access_review(const NeededVerb& needed);

/// `status.allowed` of the answer; Malformed if it is not there.
[[nodiscard]] Result<bool> parse_access_review(std::string_view body);

/// `forbidden: pods/eviction create (needed by: evict)`.
[[nodiscard]] std::string forbidden_line(const NeededVerb& needed);

}  // namespace dhc
