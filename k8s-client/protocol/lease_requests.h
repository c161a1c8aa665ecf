#pragma once
#include <string>

#include "base/error.h"
#include "k8s-client/model/lease.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// Which Lease is contested, and under which name we write it.
struct LeaseSubject {
  std::string ns;
  std::string name;
  std::string manager;  ///< Field manager, and value of the label app.kubernetes.io/managed-by.
};

/// Asks for the Lease as it is, never from a cache.
[[nodiscard]] Request build_lease_get(const LeaseSubject& subject);

/// Makes the Lease if there is none, held by nobody. Under a field manager of its own and without a spec: whatever the
/// Lease says by then stays. It is an apply because only so can `create` be bound to the name. **Source:** seen on
/// 1.37.1.
[[nodiscard]] Request build_lease_create(const LeaseSubject& subject);

/// Makes `wanted` the Lease's spec, but only of this very object in this very version (`wanted.meta`): of two who try
/// so, the server refuses one with 409. It takes the fields from whoever had set them: the version decides alone.
[[nodiscard]] Request build_lease_write(const LeaseSubject& subject, const Lease& wanted);

/// The Lease in an answer. Malformed: it is none, or has no version.
[[nodiscard]] Result<Lease> parse_lease(const Response& response);

}  // namespace dhc::k8s
