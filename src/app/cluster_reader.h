#pragma once
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/access_review.h"
#include "app/message.h"
#include "app/policy_desk.h"
#include "base/error.h"
#include "base/now.h"
#include "k8s-client/client.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc {

/// What one look at a cluster has found.
struct ClusterSight {
  std::vector<k8s::Delivery> deliveries;  ///< A complete list of each watched kind, and what could not be read of it.
  EarlierState earlier;                   ///< What 0.1.0 has written down.
  std::optional<PolicyRead> policy;       ///< Of the configuration's ConfigMap; none: it was not asked for.
};

/// Where to look.
struct ClusterLook {
  std::string own_namespace;  ///< Where the state ConfigMap is.
  std::optional<ConfigMapName> config_map;
  Millis patience = Seconds(120);  ///< For all the lists together.
};

/// Lists what the controller watches, once, with the watches' own code, and writes nothing. What may not be listed
/// (Forbidden) and what does not come within the patience is an error that names the kind and why; Cancelled: stopped.
[[nodiscard]] Result<ClusterSight> read_cluster(const std::shared_ptr<const k8s::Client>& client,
                                                const ClusterLook& look, const std::stop_token& stop);

}  // namespace dhc
