#include "k8s-client/model/decoder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <simdjson.h>

#include "k8s-client/model/decode_config_map.h"
#include "k8s-client/model/decode_device_taint_rule.h"
#include "k8s-client/model/decode_disruption_budget.h"
#include "k8s-client/model/decode_job.h"
#include "k8s-client/model/decode_lease.h"
#include "k8s-client/model/decode_meta.h"
#include "k8s-client/model/decode_namespace.h"
#include "k8s-client/model/decode_node.h"
#include "k8s-client/model/decode_owner.h"
#include "k8s-client/model/decode_pod.h"
#include "k8s-client/model/decode_pod_group.h"
#include "k8s-client/model/decode_resource_claim.h"
#include "k8s-client/model/decode_resource_slice.h"
#include "k8s-client/model/json_document.h"
#include "k8s-client/model/json_frame.h"
#include "k8s-client/model/json_reading.h"

namespace dhc::k8s {

namespace {

enum class EventType { Added, Modified, Deleted, Bookmark, Error };

struct EventFrame {
  std::string_view prefix;  ///< How the server begins such a line.
  std::string_view word;
  EventType type;
};
constexpr std::array<EventFrame, 5> kEventFrames = {
    EventFrame{R"({"type":"MODIFIED","object":)", "MODIFIED", EventType::Modified},
    EventFrame{R"({"type":"ADDED","object":)", "ADDED", EventType::Added},
    EventFrame{R"({"type":"DELETED","object":)", "DELETED", EventType::Deleted},
    EventFrame{R"({"type":"BOOKMARK","object":)", "BOOKMARK", EventType::Bookmark},
    EventFrame{R"({"type":"ERROR","object":)", "ERROR", EventType::Error},
};

// Reads the object behind `root` as `kind`.
template <class Record, auto kRead>
bool read_as(JsonObject root, Fault& fault, const KeptFields& kept, Object& out) {
  return kRead(root, fault, kept, out.emplace<Record>());
}

bool read_object(JsonObject root, Fault& fault, const KeptFields& kept, Kind kind, Object& out) {
  switch (kind) {
    case Kind::Pod:
      return read_as<Pod, read_pod>(root, fault, kept, out);
    case Kind::ResourceClaim:
      return read_as<ResourceClaim, read_resource_claim>(root, fault, kept, out);
    case Kind::ResourceSlice:
      return read_as<ResourceSlice, read_resource_slice>(root, fault, kept, out);
    case Kind::Node:
      return read_as<Node, read_node>(root, fault, kept, out);
    case Kind::Namespace:
      return read_as<Namespace, read_namespace>(root, fault, kept, out);
    case Kind::DeviceTaintRule:
      return read_as<DeviceTaintRule, read_device_taint_rule>(root, fault, kept, out);
    case Kind::Job:
      return read_as<Job, read_job>(root, fault, kept, out);
    case Kind::ReplicaSet:
    case Kind::StatefulSet:
      return read_owner(root, fault, kept, out.emplace<Owner>(Owner{.kind = kind, .meta = {}}));
    case Kind::PodDisruptionBudget:
      return read_as<DisruptionBudget, read_disruption_budget>(root, fault, kept, out);
    case Kind::PodGroup:
      return read_as<PodGroup, read_pod_group>(root, fault, kept, out);
    case Kind::ConfigMap:
      return read_as<ConfigMap, read_config_map>(root, fault, kept, out);
    case Kind::Lease:
      return read_as<Lease, read_lease>(root, fault, kept, out);
  }
  return fault.is("a kind that is not read");
}

struct BookmarkMeta {
  std::string resource_version;
  bool initial_events_end = false;
};

bool read_bookmark_meta(JsonValue value, Fault& fault, BookmarkMeta& meta) {
  meta = {};
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "resourceVersion") return read_name(field, fault, meta.resource_version) || fault.in(key);
    if (key != "annotations") return true;
    meta.initial_events_end = false;
    const bool read = each_field(field, fault, [&](std::string_view name, JsonValue text) {
      if (name != kInitialEventsEnd) return true;
      std::string word;
      if (!read_text(text, fault, word)) return false;
      meta.initial_events_end = word == "true";
      return true;
    });
    return read || fault.in(key);
  });
}

bool read_bookmark(JsonObject root, Fault& fault, BookmarkMeta& meta) {
  const bool read = each_field(root, fault, [&](std::string_view key, JsonValue field) {
    return key != "metadata" || read_bookmark_meta(field, fault, meta) || fault.in(key);
  });
  if (!read) return false;
  return require(meta.resource_version, fault, "resourceVersion") || fault.in("metadata");
}

}  // namespace

struct Decoder::State {
  Kind kind;
  KeptFields kept;
  JsonDocument document;

  WatchEvent bad(std::string_view object, const Fault& fault);
  WatchEvent changed(std::string_view object);
  WatchEvent deleted(std::string_view object);
  WatchEvent bookmark(std::string_view object);
  WatchEvent decode(EventType type, std::string_view object);
  WatchEvent decode_any_line(std::string_view line);
  std::string unescaped(std::string_view key);
  bool read_page_meta(std::string_view json, Fault& fault, ListPage& page);
  bool read_items(std::string_view json, Fault& fault, ListPage& page);
};

WatchEvent Decoder::State::bad(std::string_view object, const Fault& fault) {
  auto identity = document.identity(object);
  return WatchEvent{std::move(identity.resource_version),
                    BadObject{std::move(identity.ns), std::move(identity.name), std::move(identity.uid), fault.text()}};
}

WatchEvent Decoder::State::changed(std::string_view object) {
  Fault fault;
  Changed changed;
  const auto read = [&](JsonObject root) { return read_object(root, fault, kept, kind, changed.object); };
  if (!document.read(object, fault, read)) return bad(object, fault);
  auto version = meta_of(changed.object).resource_version;
  return WatchEvent{std::move(version), std::move(changed)};
}

WatchEvent Decoder::State::deleted(std::string_view object) {
  Fault fault;
  Meta meta;
  const auto read = [&](JsonObject root) { return read_meta_only(root, fault, kept, kind, meta); };
  if (!document.read(object, fault, read)) return bad(object, fault);
  return WatchEvent{std::move(meta.resource_version),
                    Deleted{std::move(meta.ns), std::move(meta.name), std::move(meta.uid)}};
}

WatchEvent Decoder::State::bookmark(std::string_view object) {
  Fault fault;
  BookmarkMeta meta;
  const auto read = [&](JsonObject root) { return read_bookmark(root, fault, meta); };
  if (!document.read(object, fault, read)) return bad(object, fault);
  return WatchEvent{std::move(meta.resource_version), Bookmark{meta.initial_events_end}};
}

WatchEvent Decoder::State::decode(EventType type, std::string_view object) {
  switch (type) {
    case EventType::Added:
    case EventType::Modified:
      return changed(object);
    case EventType::Deleted:
      return deleted(object);
    case EventType::Bookmark:
      return bookmark(object);
    case EventType::Error:
      break;
  }
  return WatchEvent{{}, ErrorStatus{std::string(object)}};
}

// The text of a string between its quotes; a key that cannot be read is none of ours.
std::string Decoder::State::unescaped(std::string_view key) {
  if (!key.contains('\\')) return std::string(key);
  return document.text_of(std::string("\"").append(key).append("\"")).value_or("");
}

// Members in any order and however written; of duplicates the last counts.
WatchEvent Decoder::State::decode_any_line(std::string_view line) {
  const auto no_event = [](std::string_view why) { return WatchEvent{{}, BadObject{{}, {}, {}, std::string(why)}}; };
  JsonFrame frame(line);
  std::string_view key;
  std::string_view value;
  std::string_view type_text;
  std::string_view object;
  auto step = frame.next_member(key, value);
  for (; step == JsonFrame::Step::Next; step = frame.next_member(key, value)) {
    const auto name = unescaped(key);
    if (name == "type") type_text = value;
    if (name == "object") object = value;
  }
  if (step == JsonFrame::Step::Broken) return no_event("the line is not one JSON object");
  if (object.empty()) return no_event("object: missing");
  const auto word = type_text.starts_with('"') ? document.text_of(type_text) : std::nullopt;
  const auto* known = word ? std::ranges::find(kEventFrames, *word, &EventFrame::word) : kEventFrames.end();
  if (known != kEventFrames.end()) return decode(known->type, object);
  Fault fault;
  fault.is(type_text.empty() ? "missing" : "not a type of event");
  fault.in("type");
  return bad(object, fault);
}

bool Decoder::State::read_page_meta(std::string_view json, Fault& fault, ListPage& page) {
  page.resource_version.clear();
  page.continue_token.clear();
  if (json == "null") return true;
  return document.read(json, fault, [&](JsonObject root) {
    return each_field(root, fault, [&](std::string_view key, JsonValue field) {
      if (key == "resourceVersion") return read_name(field, fault, page.resource_version) || fault.in(key);
      // A token is opaque and may be long; the request that carries it encodes it.
      if (key == "continue") return read_text(field, fault, page.continue_token) || fault.in(key);
      return true;
    });
  });
}

bool Decoder::State::read_items(std::string_view json, Fault& fault, ListPage& page) {
  page.objects.clear();
  page.bad.clear();
  if (json == "null") return true;
  JsonFrame frame(json);
  std::string_view item;
  auto step = frame.next_item(item);
  for (; step == JsonFrame::Step::Next; step = frame.next_item(item)) {
    auto event = changed(item);
    if (auto* read = std::get_if<Changed>(&event.what)) {
      page.objects.push_back(std::move(read->object));
    } else {
      page.bad.push_back(std::get<BadObject>(std::move(event.what)));
    }
  }
  return step == JsonFrame::Step::End || fault.is("not a list");
}

Decoder::Decoder(Kind kind, KeptFields kept) : state_(std::make_unique<State>(State{kind, kept, {}})) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

std::expected<Object, BadObject> Decoder::decode_object(std::string_view json) {
  auto event = state_->changed(json);
  if (auto* changed = std::get_if<Changed>(&event.what)) return std::move(changed->object);
  return std::unexpected(std::get<BadObject>(std::move(event.what)));
}

WatchEvent Decoder::decode_event(std::string_view line) {
  const auto text = trim_space(line);
  // What the server writes, without a scan for the end of the object: all between the prefix and the last bracket has
  // to be one object.
  const auto* known = std::ranges::find_if(kEventFrames, [&](const auto& f) { return text.starts_with(f.prefix); });
  if (known != kEventFrames.end() && known->type != EventType::Error && text.ends_with('}')) {
    const auto size = text.size() - known->prefix.size() - 1;
    auto event = state_->decode(known->type, text.substr(known->prefix.size(), size));
    if (!std::holds_alternative<BadObject>(event.what)) return event;
  }
  return state_->decode_any_line(text);
}

Result<ListPage> Decoder::decode_list(std::string_view body) {
  const auto malformed = [](Fault& fault, std::string_view where) {
    if (!where.empty()) fault.in(where);
    return fail(ErrorKind::Malformed, "list page: " + fault.text());
  };
  ListPage page;
  Fault fault;
  bool has_items = false;
  JsonFrame frame(body);
  std::string_view key;
  std::string_view value;
  auto step = frame.next_member(key, value);
  for (; step == JsonFrame::Step::Next; step = frame.next_member(key, value)) {
    const auto name = state_->unescaped(key);
    if (name == "metadata" && !state_->read_page_meta(value, fault, page)) return malformed(fault, name);
    if (name != "items") continue;
    has_items = true;
    if (!state_->read_items(value, fault, page)) return malformed(fault, name);
  }
  if (step == JsonFrame::Step::Broken) {
    fault.is("not one JSON object");
    return malformed(fault, "");
  }
  if (!has_items) {
    fault.is("missing");
    return malformed(fault, "items");
  }
  if (!require(page.resource_version, fault, "resourceVersion")) return malformed(fault, "metadata");
  return page;
}

}  // namespace dhc::k8s
