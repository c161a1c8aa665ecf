#pragma once
#include <expected>
#include <string_view>

#include "base/error.h"
#include "k8s-client/model/decoded.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/reading.h"

namespace dhc::k8s {

/// True for what `ProtoDecoder` can read; all else is asked for in JSON. `api_version` such as `resource.k8s.io/v1`:
/// versions of one kind number their fields differently.
[[nodiscard]] bool reads_protobuf(Kind kind, std::string_view api_version);

/// True if a body or an object is in Kubernetes' protobuf, by its first bytes.
[[nodiscard]] bool is_protobuf(std::string_view body);

/// Reads the API's protobuf into our records, for one kind: of any object the same record as `Decoder` makes of the
/// server's JSON.
///
/// Fields that we do not use are stepped over. A field that we use and that has the wrong wire type, bytes that are no
/// protobuf, a name with control characters or an object without identity makes the whole object bad, never the others.
class ProtoDecoder {
 public:
  explicit ProtoDecoder(Kind kind, KeptFields kept = {}) : kind_(kind), kept_(kept) {}

  /// One frame of a watch, without its length. One that is no event at all is a BadObject without identity.
  [[nodiscard]] WatchEvent decode_event(std::string_view frame) const;

  /// One page of a list. Errors: Malformed, when what stands around the items cannot be read or has no version (nothing
  /// may be concluded from such a page).
  [[nodiscard]] Result<ListPage> decode_list(std::string_view body) const;

  /// One object in its envelope.
  [[nodiscard]] std::expected<Object, BadObject> decode_object(std::string_view bytes) const;

 private:
  [[nodiscard]] WatchEvent changed(std::string_view message) const;
  [[nodiscard]] WatchEvent deleted(std::string_view message) const;
  [[nodiscard]] bool open(std::string_view bytes, std::string_view kind, Fault& fault, std::string_view& message) const;

  Kind kind_;
  KeptFields kept_;
};

}  // namespace dhc::k8s
