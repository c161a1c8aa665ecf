#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "k8s-client/model/json_reading.h"

namespace dhc::k8s {

/// What could be read of an object that as a whole could not; each part may be empty.
struct Identity {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
};

/// One JSON document at a time, in buffers that are kept. On-demand: what nobody asks for is only stepped over.
class JsonDocument {
 public:
  /// Calls `read(root)` on the document's object, and checks that UTF-8 is valid in all of it and that nothing follows
  /// the object. False, with the fault set, if anything was wrong.
  template <class Read>
  bool read(std::string_view json, Fault& fault, Read&& read) {
    simdjson::ondemand::document document;
    JsonObject root;
    if (const auto error = start(json, document)) return fault.is(simdjson::error_message(error));
    if (document.get_object().get(root)) return fault.is("not an object");
    if (!read(root)) return false;
    const bool consumed = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    return consumed || fault.is("something follows the object");
  }

  /// The text of a document that is one string.
  [[nodiscard]] std::optional<std::string> text_of(std::string_view json);

  /// What can still be read of whose object this is, of one that `read` refused. Names that are no names are left out.
  [[nodiscard]] Identity identity(std::string_view json);

 private:
  simdjson::error_code start(std::string_view json, simdjson::ondemand::document& document);
  simdjson::error_code start_again(std::size_t size, simdjson::ondemand::document& document);

  std::vector<char> buffer_;
  simdjson::ondemand::parser parser_;
};

}  // namespace dhc::k8s
