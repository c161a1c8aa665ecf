#pragma once
#include <string>
#include <variant>
#include <vector>

#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// The whole of one kind, complete: replaces what was known.
struct Snapshot {
  Kind kind = Kind::Pod;
  std::vector<Object> objects;
  bool served = true;            ///< False: the server does not serve this kind, `objects` is empty.
  std::string api_version = {};  ///< Which one was read, such as `resource.k8s.io/v1`; empty if not served.
};

/// One object was added or changed.
struct Upsert {
  Object object;
};

/// One object is gone.
struct Remove {
  Kind kind = Kind::Pod;
  std::string ns;
  std::string name;
  std::string uid;
};

/// One object could not be read: what is known of it is kept but must not be acted on.
struct Unreadable {
  Kind kind = Kind::Pod;
  std::string ns;    ///< As far as it could be read.
  std::string name;  ///< As far as it could be read.
  std::string uid;   ///< As far as it could be read.
  std::string why;   ///< Names the field and the fault.
};

/// All that a watch can tell.
using Delivery = std::variant<Snapshot, Upsert, Remove, Unreadable>;

}  // namespace dhc::k8s
