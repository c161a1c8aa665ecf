#pragma once
#include <cstdint>
#include <string>

#include "k8s-client/model/meta.h"

namespace dhc::k8s {

/// The part of a Lease that an election reads. Its times are the holder's wall clock: they are only compared for
/// change, and kept as text. **Source:** coordination.k8s.io/v1 LeaseSpec.
struct Lease {
  Meta meta;
  std::string holder = {};  ///< Empty: nobody holds it.
  std::int64_t duration_seconds = 0;
  std::string acquire_time = {};
  std::string renew_time = {};  ///< Empty: nobody has ever held it.
  std::int64_t transitions = 0;
  friend bool operator==(const Lease&, const Lease&) = default;
};

}  // namespace dhc::k8s
