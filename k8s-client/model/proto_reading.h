#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "base/now.h"
#include "k8s-client/model/reading.h"

/// The readers of protobuf messages, named as those of JSON are. A field that we use and that has the wrong wire type
/// is a fault; what we do not use is stepped over. Of a scalar that comes twice the last counts, messages are merged
/// and lists added up, as every reader of protobuf does it.
namespace dhc::k8s::proto {

/// One field's value, still in the message's own bytes.
struct Value {
  protozero::pbf_wire_type type = protozero::pbf_wire_type::unknown;
  std::uint64_t number = 0;  ///< Of a varint.
  std::string_view bytes;    ///< Of text, bytes and messages.
};

/// Walks the fields of one message; whatever the bytes are, it ends.
class Fields {
 public:
  enum class Step : std::uint8_t { Next, End, Broken };

  explicit Fields(std::string_view message) : reader_(message.data(), message.size()) {}
  [[nodiscard]] Step next(std::uint32_t& tag, Value& value) noexcept;

 private:
  protozero::pbf_reader reader_;
};

/// Calls `on_field(tag, value)` for each field. The callback returns false, with the fault set, to stop.
template <class OnField>
bool each_field(std::string_view message, Fault& fault, OnField&& on_field) {
  Fields fields(message);
  std::uint32_t tag = 0;
  Value value;
  while (true) {
    switch (fields.next(tag, value)) {
      case Fields::Step::Next:
        if (!on_field(tag, value)) return false;
        break;
      case Fields::Step::End:
        return true;
      case Fields::Step::Broken:
        return fault.is("broken protobuf");
    }
  }
}

/// The bytes of text or of a message, not copied.
bool read_view(const Value& value, Fault& fault, std::string_view& out);

/// The same for a value that should be a message.
template <class OnField>
bool each_field(const Value& value, Fault& fault, OnField&& on_field) {
  std::string_view message;
  return read_view(value, fault, message) && each_field(message, fault, on_field);
}

/// One more item of a list of records: `read(value, fault, record)` fills it.
template <class List, class Read>
bool read_item(const Value& value, Fault& fault, List& out, Read&& read) {
  if (read(value, fault, out.emplace_back())) return true;
  return fault.in(out.size() - 1);
}

/// Makes the text what the API server writes in JSON: each byte that is no UTF-8 becomes U+FFFD. True if it was
/// another.
/// **Source:** Go's encoding/json; protobuf's strings are stored as a client sent them.
bool repair_text(std::string& text);
bool repair_text(SharedText& text);

/// Adds a part to a message of which parts may come apart: one after the other they are the message. `whole` is a view
/// of the value, or of `joined`.
bool read_part(const Value& value, Fault& fault, std::string& joined, std::string_view& whole);

/// Any text.
bool read_text(const Value& value, Fault& fault, std::string& out);
bool read_text(const Value& value, Fault& fault, SharedText& out);

/// Text for people, cut to 1,024 characters.
bool read_message(const Value& value, Fault& fault, std::string& out);
bool read_message(const Value& value, Fault& fault, SharedText& out);

/// A name, UID or version: no control characters, at most 1,024 bytes.
bool read_name(const Value& value, Fault& fault, std::string& out);
bool read_name(const Value& value, Fault& fault, SharedText& out);

/// One more name of a list.
bool read_one_name(const Value& value, Fault& fault, std::vector<std::string>& out);

/// A whole number; `out` stays as it is without one, which is the API's default.
bool read_number(const Value& value, Fault& fault, std::int64_t& out);
bool read_integer(const Value& value, Fault& fault, std::optional<std::int64_t>& out);
bool read_integer(const Value& value, Fault& fault, SharedOptional<std::int64_t>& out);

/// Adds the whole numbers of a list that stands packed in one field. False: it is broken.
[[nodiscard]] bool read_packed(std::string_view bytes, std::vector<std::int64_t>& out);

/// True or false.
bool read_bool(const Value& value, Fault& fault, bool& out);

/// A metav1.Time: an empty message stands for none, and what is below a second is not read, because JSON has none.
/// **Source:** apimachinery meta/v1 time_proto.go.
bool read_time(const Value& value, Fault& fault, std::optional<WallTime>& out);
bool read_time(const Value& value, Fault& fault, SharedOptional<WallTime>& out);

/// One entry of a map, whose value is text or a message. **Source:** a map is a list of messages {key = 1, value = 2}.
bool read_map_entry(const Value& value, Fault& fault, std::string_view& key, Value& held);

/// The map that the entries make, sorted, its text repaired; of equal keys the last counts.
[[nodiscard]] StringMap to_map(std::vector<MapEntry<std::string_view>>& entries);
[[nodiscard]] std::vector<ResourceAmount> to_map(std::vector<MapEntry<std::int64_t>>& entries);

}  // namespace dhc::k8s::proto
