#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/now.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// The whole of one kind, complete: replaces what was known.
struct Snapshot {
  Kind kind = Kind::Pod;
  std::vector<Object> objects;
  bool served = true;            ///< False: the server does not serve this kind, `objects` is empty.
  std::string api_version = {};  ///< Which one was read, such as `resource.k8s.io/v1`; empty if not served.
  /// The server's data is older than what was delivered before, as after a restore of etcd: what is missing was removed
  /// by nobody.
  bool went_back = false;
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

/// What a watch says of itself, after what it had to deliver.
enum class WatchWord : std::uint8_t {
  Heard,    ///< An event, a bookmark or the end of a list came: all up to then is delivered.
  Doubted,  ///< What was delivered is known to be wrong; a Snapshot follows.
};

/// A word of one watch. Heard comes with every bookmark and end of a list, and at most every 5 s with other events.
struct Told {
  Kind kind = Kind::Pod;
  std::string name;  ///< Of the only object that is watched; empty: all.
  WatchWord word = WatchWord::Heard;
  MonoTime at;  ///< When it came, by the watcher's clock.
};

/// All that a watch can tell.
using Delivery = std::variant<Snapshot, Upsert, Remove, Unreadable, Told>;

}  // namespace dhc::k8s
