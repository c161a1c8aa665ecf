#pragma once
#include <string>
#include <vector>

#include "k8s-client/model/object.h"

namespace dhc {

/// An object as its watch had delivered it when a read was sent, and as the read then showed it by quorum.
struct FreshRead {
  k8s::Kind kind = k8s::Kind::Pod;
  std::string ns;
  std::string name;
  std::string held_uid;
  std::string held_version;
  std::string uid = {};      ///< Empty: the server has no object of this name.
  std::string version = {};  ///< Likewise.
  friend bool operator==(const FreshRead&, const FreshRead&) = default;
};

using FreshReads = std::vector<FreshRead>;

}  // namespace dhc
