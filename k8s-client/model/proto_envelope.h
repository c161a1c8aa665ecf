#pragma once
#include <string_view>

#include "k8s-client/model/reading.h"

namespace dhc::k8s::proto {

/// How a body or object in Kubernetes' protobuf begins; no JSON does. **Source:** apimachinery
/// runtime/serializer/protobuf, protoEncodingPrefix.
inline constexpr std::string_view kMagic{"k8s\0", 4};

/// What stands around an object: what it is, and its message. All views live as long as the bytes.
struct Envelope {
  std::string_view api_version;
  std::string_view kind;
  std::string_view message;
};

/// Opens the envelope, which has to begin with `kMagic`. **Source:** apimachinery runtime generated.proto, Unknown.
bool open_envelope(std::string_view bytes, Fault& fault, Envelope& envelope);

/// What a frame of a watch holds. **Source:** meta/v1 generated.proto, WatchEvent; runtime generated.proto,
/// RawExtension. The frame itself has no envelope, its object has one.
struct EventFrame {
  std::string_view type;
  std::string_view object;
};
bool open_event(std::string_view frame, Fault& fault, EventFrame& event);

}  // namespace dhc::k8s::proto
