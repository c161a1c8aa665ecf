#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8s-client/model/meta.h"

namespace dhc::k8s {

// What reading JSON and reading protobuf have in common.

/// The first thing that was wrong with a document, and where. The path is put together while the readers return, so
/// that a good document pays nothing for it.
class Fault {
 public:
  /// Says what is wrong here. Always false, so that readers can `return fault.is(...)`.
  bool is(std::string_view why) {
    why_ = why;
    path_.clear();
    return false;
  }
  /// The fault lies in this field. Always false.
  bool in(std::string_view field);
  /// The fault lies in this item of a list. Always false.
  bool in(std::size_t index);
  /// `status.conditions[2].type: not a string`.
  [[nodiscard]] std::string text() const;

 private:
  std::string path_;
  std::string_view why_;  ///< A literal.
};

/// False, with the fault set, if `text` is empty.
inline bool require(std::string_view text, Fault& fault, std::string_view field) {
  if (!text.empty()) return true;
  fault.is("missing");
  return fault.in(field);
}

/// `text` up to 1,024 characters (code points); the text is valid UTF-8.
[[nodiscard]] std::string_view cut_message(std::string_view text);

/// True if `text` may be a name: no control characters, at most 1,024 bytes.
[[nodiscard]] bool is_clean_name(std::string_view text);

/// One entry of a map, still in the document's own bytes; without a value it counts as absent.
template <class Value>
struct MapEntry {
  std::string_view key;
  std::size_t order = 0;  ///< Its place in the document.
  std::optional<Value> value;
};

/// Sorted by key, the last of equal keys, without absent ones. Linear but for the sort, whatever a hostile map holds.
[[nodiscard]] std::vector<StringMap::value_type> settled(std::vector<MapEntry<std::string_view>>& entries);
[[nodiscard]] std::vector<ResourceAmount> settled(std::vector<MapEntry<std::int64_t>>& entries);

/// The annotations that are kept of every object, whatever its reader was told.
[[nodiscard]] bool is_own_annotation(std::string_view key);

/// One of an object's owners.
void note_owner(OwnerRef owner, bool is_controller, Meta& meta);

/// Whole up to what the API allows, 32 KiB: our own condition is our memory, and names every device of its pod.
void cut_condition_message(std::string& message);

/// An effect that we do not know becomes None. **Source:** KEP-5055.
void settle_effect(Taint& taint);

}  // namespace dhc::k8s
