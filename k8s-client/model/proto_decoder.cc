#include "k8s-client/model/proto_decoder.h"

#include <string>
#include <utility>

#include "k8s-client/model/proto_envelope.h"
#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"

namespace dhc::k8s {

namespace {

using proto::each_field;
using proto::Value;

bool read_message_as(Kind kind, std::string_view message, Fault& fault, const KeptFields& kept, Object& out) {
  switch (kind) {
    case Kind::Pod:
      return proto::read_pod(message, fault, kept, out.emplace<Pod>());
    case Kind::ResourceClaim:
      return proto::read_resource_claim(message, fault, kept, out.emplace<ResourceClaim>());
    case Kind::ResourceSlice:
      return proto::read_resource_slice(message, fault, kept, out.emplace<ResourceSlice>());
    case Kind::Node:
      return proto::read_node(message, fault, kept, out.emplace<Node>());
    case Kind::Namespace:
      return proto::read_namespace(message, fault, kept, out.emplace<Namespace>());
    case Kind::DeviceTaintRule:
      return proto::read_device_taint_rule(message, fault, kept, out.emplace<DeviceTaintRule>());
    case Kind::Job:
      return proto::read_job(message, fault, kept, out.emplace<Job>());
    case Kind::ReplicaSet:
    case Kind::StatefulSet:
    case Kind::PodDisruptionBudget:
    case Kind::PodGroup:
    case Kind::ConfigMap:
    case Kind::Lease:
      break;
  }
  return fault.is("a kind that is not read from protobuf");
}

// One piece of identity, or empty: a name with control characters is none.
void read_name_leniently(const Value& value, std::string& name) {
  Fault ignored;
  if (!proto::read_name(value, ignored, name) || name.contains("\xEF\xBF\xBD")) name.clear();
}

/// What can still be read of whose object this is, and why it could not be read as a whole.
WatchEvent bad_message(std::string_view message, const Fault& fault) {
  Fault ignored;
  BadObject bad;
  std::string version;
  (void)each_field(message, ignored, [&](std::uint32_t tag, const Value& metadata) {
    if (tag != 1) return true;
    (void)each_field(metadata, ignored, [&](std::uint32_t part, const Value& field) {
      if (part == 1) read_name_leniently(field, bad.name);
      if (part == 3) read_name_leniently(field, bad.ns);
      if (part == 5) read_name_leniently(field, bad.uid);
      if (part == 6) read_name_leniently(field, version);
      return true;
    });
    return true;
  });
  bad.why = fault.text();
  return WatchEvent{std::move(version), std::move(bad)};
}

/// The end marker of a WatchList is an annotation of a bookmark. **Source:** KEP-3157.
bool read_annotation(const Value& value, Fault& fault, bool& initial_events_end) {
  std::string_view key;
  Value held;
  if (!proto::read_map_entry(value, fault, key, held)) return false;
  if (key == kInitialEventsEnd) initial_events_end = held.bytes == "true";
  return true;
}

WatchEvent bookmark_of(std::string_view message) {
  Fault fault;
  Bookmark bookmark;
  std::string version;
  const bool read = each_field(message, fault, [&](std::uint32_t tag, const Value& metadata) {
    if (tag != 1) return true;
    const bool good = each_field(metadata, fault, [&](std::uint32_t part, const Value& field) {
      if (part == 6) return proto::read_name(field, fault, version) || fault.in("resourceVersion");
      if (part == 12) return read_annotation(field, fault, bookmark.initial_events_end) || fault.in("annotations");
      return true;
    });
    return good || fault.in("metadata");
  });
  if (!read || !(require(version, fault, "resourceVersion") || fault.in("metadata"))) {
    return bad_message(message, fault);
  }
  return WatchEvent{std::move(version), bookmark};
}

/// **Source:** meta/v1 generated.proto, ListMeta.
bool read_list_meta(const Value& value, Fault& fault, ListPage& page) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 2) return proto::read_name(field, fault, page.resource_version) || fault.in("resourceVersion");
    // A token is opaque and may be long; the request that carries it encodes it.
    if (tag == 3) return proto::read_text(field, fault, page.continue_token) || fault.in("continue");
    return true;
  });
}

WatchEvent no_event(const Fault& fault) { return WatchEvent{{}, BadObject{{}, {}, {}, fault.text()}}; }

Result<ListPage> no_page(const Fault& fault) { return fail(ErrorKind::Malformed, "list page: " + fault.text()); }

}  // namespace

bool reads_protobuf(Kind kind, std::string_view api_version) {
  switch (kind) {
    case Kind::Pod:
    case Kind::Node:
    case Kind::Namespace:
      return api_version == "v1";
    case Kind::Job:
      return api_version == "batch/v1";
    case Kind::ResourceClaim:
    case Kind::ResourceSlice:
    case Kind::DeviceTaintRule:
      return api_version == "resource.k8s.io/v1";
    case Kind::ReplicaSet:
    case Kind::StatefulSet:
    case Kind::PodDisruptionBudget:
    case Kind::PodGroup:
    case Kind::ConfigMap:
    case Kind::Lease:
      return false;
  }
  return false;
}

bool is_protobuf(std::string_view body) { return body.starts_with(proto::kMagic); }

bool ProtoDecoder::open(std::string_view bytes, std::string_view kind, Fault& fault, std::string_view& message) const {
  proto::Envelope envelope;
  if (!proto::open_envelope(bytes, fault, envelope)) return false;
  if (envelope.kind != kind) return fault.is("another kind") || fault.in("kind");
  if (!reads_protobuf(kind_, envelope.api_version))
    return fault.is("not a version that is read") || fault.in("apiVersion");
  message = envelope.message;
  return true;
}

WatchEvent ProtoDecoder::changed(std::string_view message) const {
  Fault fault;
  Changed changed;
  if (!read_message_as(kind_, message, fault, kept_, changed.object)) return bad_message(message, fault);
  auto version = meta_of(changed.object).resource_version;
  return WatchEvent{std::move(version), std::move(changed)};
}

WatchEvent ProtoDecoder::deleted(std::string_view message) const {
  Fault fault;
  Meta meta;
  const auto no_other = [](std::uint32_t, const Value&) { return true; };
  if (!proto::read_root(message, fault, kept_, kind_, meta, no_other)) return bad_message(message, fault);
  return WatchEvent{std::move(meta.resource_version),
                    Deleted{std::move(meta.ns), std::move(meta.name), std::move(meta.uid)}};
}

WatchEvent ProtoDecoder::decode_event(std::string_view frame) const {
  Fault fault;
  proto::EventFrame event;
  if (!proto::open_event(frame, fault, event)) return no_event(fault);
  if (event.type == "ERROR") return WatchEvent{{}, ErrorStatus{std::string(event.object)}};
  std::string_view message;
  if (!open(event.object, to_string(kind_), fault, message)) {
    fault.in("object");
    return no_event(fault);
  }
  if (event.type == "ADDED" || event.type == "MODIFIED") return changed(message);
  if (event.type == "DELETED") return deleted(message);
  if (event.type == "BOOKMARK") return bookmark_of(message);
  fault.is("not a type of event");
  fault.in("type");
  return bad_message(message, fault);
}

Result<ListPage> ProtoDecoder::decode_list(std::string_view body) const {
  Fault fault;
  std::string_view message;
  ListPage page;
  if (!open(body, std::string(to_string(kind_)) + "List", fault, message)) return no_page(fault);
  const bool read = each_field(message, fault, [&](std::uint32_t tag, const Value& value) {
    if (tag == 1) return read_list_meta(value, fault, page) || fault.in("metadata");
    if (tag != 2) return true;
    std::string_view item;
    if (!proto::read_view(value, fault, item)) return fault.in("items");
    auto event = changed(item);
    if (auto* object = std::get_if<Changed>(&event.what)) {
      page.objects.push_back(std::move(object->object));
    } else {
      page.bad.push_back(std::get<BadObject>(std::move(event.what)));
    }
    return true;
  });
  if (!read) return no_page(fault);
  if (!(require(page.resource_version, fault, "resourceVersion") || fault.in("metadata"))) return no_page(fault);
  return page;
}

std::expected<Object, BadObject> ProtoDecoder::decode_object(std::string_view bytes) const {
  Fault fault;
  std::string_view message;
  if (!open(bytes, to_string(kind_), fault, message)) return std::unexpected(BadObject{{}, {}, {}, fault.text()});
  auto event = changed(message);
  if (auto* object = std::get_if<Changed>(&event.what)) return std::move(object->object);
  return std::unexpected(std::get<BadObject>(std::move(event.what)));
}

}  // namespace dhc::k8s
