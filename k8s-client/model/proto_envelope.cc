#include "k8s-client/model/proto_envelope.h"

#include "k8s-client/model/proto_reading.h"

namespace dhc::k8s::proto {

namespace {

// **Source:** runtime generated.proto, TypeMeta.
bool read_type(const Value& value, Fault& fault, Envelope& envelope) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_view(field, fault, envelope.api_version) || fault.in("apiVersion");
    if (tag == 2) return read_view(field, fault, envelope.kind) || fault.in("kind");
    return true;
  });
}

}  // namespace

bool open_envelope(std::string_view bytes, Fault& fault, Envelope& envelope) {
  if (!bytes.starts_with(kMagic)) return fault.is("not Kubernetes' protobuf");
  std::string_view encoding;
  std::string_view content;
  const bool read = each_field(bytes.substr(kMagic.size()), fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_type(field, fault, envelope) || fault.in("typeMeta");
      case 2:
        return read_view(field, fault, envelope.message) || fault.in("raw");
      case 3:
        return read_view(field, fault, encoding) || fault.in("contentEncoding");
      case 4:
        return read_view(field, fault, content) || fault.in("contentType");
      default:
        return true;
    }
  });
  if (!read) return false;
  const bool plain = encoding.empty() && (content.empty() || content == "application/vnd.kubernetes.protobuf");
  return plain || fault.is("an envelope around something that is no protobuf");
}

bool open_event(std::string_view frame, Fault& fault, EventFrame& event) {
  return each_field(frame, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_view(field, fault, event.type) || fault.in("type");
    if (tag != 2) return true;
    return each_field(field, fault, [&](std::uint32_t part, const Value& raw) {
      return part != 1 || read_view(raw, fault, event.object) || fault.in("object");
    });
  });
}

}  // namespace dhc::k8s::proto
