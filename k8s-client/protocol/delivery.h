#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/now.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// One object could not be read: what is known of it is kept but must not be acted on.
struct Unreadable {
  Kind kind = Kind::Pod;
  std::string ns;    ///< As far as it could be read.
  std::string name;  ///< As far as it could be read.
  std::string uid;   ///< As far as it could be read.
  std::string why;   ///< Names the field and the fault.
};

/// The objects of one list that could not be read, to be looked up.
class UnreadableNames {
 public:
  UnreadableNames() = default;
  explicit UnreadableNames(const std::vector<Unreadable>& unreadable);
  /// Whether this object may be among them: by its UID where that could be read, else by its name; one that has neither
  /// may be any.
  [[nodiscard]] bool contains(const Meta& meta) const;
  [[nodiscard]] bool empty() const { return !may_be_any_ && uids_.empty() && names_.empty(); }

 private:
  std::set<std::string, std::less<>> uids_;
  std::set<std::pair<std::string, std::string>> names_;  // namespace and name
  bool may_be_any_ = false;
};

/// The whole of one kind, complete: replaces what was known.
struct Snapshot {
  Kind kind = Kind::Pod;
  std::vector<Object> objects;
  bool served = true;            ///< False: the server does not serve this kind, `objects` is empty.
  std::string api_version = {};  ///< Which one was read, such as `resource.k8s.io/v1`; empty if not served.
  /// The server's data is older than what was delivered before, as after a restore of etcd: what is missing was removed
  /// by nobody.
  bool went_back = false;
  /// Objects that are there and could not be read: what is known of them stands. Each comes as an Unreadable too.
  std::vector<Unreadable> unreadable = {};
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
