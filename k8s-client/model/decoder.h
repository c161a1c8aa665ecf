#pragma once
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "k8s-client/model/kept_fields.h"
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

/// BOOKMARK: nothing happened up to this version.
struct Bookmark {
  bool initial_events_end = false;  ///< The end marker of a WatchList. **Source:** KEP-3157.
  friend bool operator==(const Bookmark&, const Bookmark&) = default;
};

/// ERROR: the Status object as JSON, for `error_from_status_object`.
struct ErrorStatus {
  std::string json;
  friend bool operator==(const ErrorStatus&, const ErrorStatus&) = default;
};

/// What one line of a watch said.
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

/// Reads the API's JSON into our records, for one kind. Keeps its buffers: one per thread, any number of documents.
///
/// Null counts as absent, unknown fields are skipped, of duplicate keys the last counts, and what follows the document
/// is an error. UTF-8 is checked everywhere, but other faults inside a part that is skipped may go unseen (on-demand
/// parsing steps over it). A field that we use and that has the wrong type, a number out of range, a name with control
/// characters or an object without identity makes the whole object bad: half a record is worse than an old one.
///
/// A pod that cannot hold devices comes as a Pod with nothing but `ns`, `name`, `uid` and `resource_version` filled, so
/// that `can_hold_devices` is false; it may become one that can, when its status is written.
class Decoder {
 public:
  explicit Decoder(Kind kind, KeptFields kept = {});
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  /// One line of a watch, with or without its newline. A line that is no event at all is a BadObject without identity.
  [[nodiscard]] WatchEvent decode_event(std::string_view line);

  /// One page of a list. Errors: Malformed, when the frame around the items cannot be read or has no `items` or no
  /// version (nothing may be concluded from such a page).
  [[nodiscard]] Result<ListPage> decode_list(std::string_view body);

  /// One object.
  [[nodiscard]] std::expected<Object, BadObject> decode_object(std::string_view json);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dhc::k8s
