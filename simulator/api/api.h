#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulator/api/answer.h"
#include "simulator/api/store.h"

namespace dhc::sim {

/// A verb on a resource that the caller may not use, as RBAC words them; `*` is any.
struct Denial {
  std::string verb;      ///< get, list, watch, create, update, patch, delete.
  std::string resource;  ///< `pods`, `pods/eviction`.
  friend bool operator==(const Denial&, const Denial&) = default;
};

/// How this API server is set up.
struct ApiSettings {
  std::optional<std::string> token;  ///< Set: any other bearer token is answered with 401.
  std::string user = "system:serviceaccount:device-health-system:device-health-controller";
  std::vector<Denial> denials;
  bool watch_list = true;  ///< False: sendInitialEvents is answered with 422, as servers without WatchList do.
  std::set<Res> unserved;  ///< 404 for these, and absent from discovery.
  std::map<Res, std::string>
      versions;  ///< Served in this version alone instead of v1 (discovery says v1 all the same).
  Millis bookmark_every = Seconds(60);
};

/// Answers one request at this moment; its effect on the store is at once.
[[nodiscard]] Answer handle(Store& store, const ApiSettings& settings, const k8s::Request& request, const Now& now);

}  // namespace dhc::sim
