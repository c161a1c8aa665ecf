#pragma once
#include <expected>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "k8s-client/model/decoded.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"

namespace dhc::k8s {

/// Reads the API's JSON into our records, for one kind. Keeps its buffers: one per thread, any number of documents.
///
/// Null counts as absent, unknown fields are skipped, of duplicate keys the last counts, and what follows the document
/// is an error. UTF-8 is checked everywhere, but other faults inside a part that is skipped may go unseen (on-demand
/// parsing steps over it). A field that we use and that has the wrong type, a number out of range, a name with control
/// characters or an object without identity makes the whole object bad: half a record is worse than an old one.
///
/// A pod that cannot hold devices comes as a Pod with nothing but `ns`, `name`, `uid` and `resource_version` filled, so
/// that `is_kept_whole` is false; it may become one that can, when its status is written.
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
