#pragma once
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// An object that could not be read: whose it is, as far as that could be read, and why.
/// Without a UID the caller cannot know which record is out of date, and has to list again (with back-off).
struct BadObject {
  std::string ns;
  std::string name;
  std::string uid;
  std::string why;  ///< The field and the fault, such as `status.phase: not a string`. For people.
  friend bool operator==(const BadObject&, const BadObject&) = default;
};

/// ADDED or MODIFIED: the object as it is now.
struct Changed {
  Object object;
};

/// DELETED: only the identity is read, so that an object we cannot read can still go away.
struct Deleted {
  std::string ns;
  std::string name;
  std::string uid;
  friend bool operator==(const Deleted&, const Deleted&) = default;
};

/// The annotation of a bookmark that ends a WatchList; its value is "true". **Source:** KEP-3157.
inline constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

/// BOOKMARK: nothing happened up to this version.
struct Bookmark {
  bool initial_events_end = false;  ///< The end marker of a WatchList. **Source:** KEP-3157.
  friend bool operator==(const Bookmark&, const Bookmark&) = default;
};

/// ERROR: the Status object as the server wrote it, for `error_from_status_object`.
struct ErrorStatus {
  std::string body;
  friend bool operator==(const ErrorStatus&, const ErrorStatus&) = default;
};

/// What one event of a watch said.
struct WatchEvent {
  /// The object's own version, from which a watch can go on; empty for ErrorStatus and where it could not be read.
  std::string resource_version;
  std::variant<Changed, Deleted, Bookmark, ErrorStatus, BadObject> what;
};

/// One page of a list.
struct ListPage {
  std::string resource_version;
  std::string continue_token;  ///< Empty on the last page.
  std::vector<Object> objects;
  std::vector<BadObject> bad;  ///< Items that could not be read; the others are not affected.
};

}  // namespace dhc::k8s
