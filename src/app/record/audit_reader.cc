#include "app/record/audit_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <simdjson.h>

#include "app/record/lines.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/protocol/version_order.h"

namespace dhc::record {

namespace {

using Element = simdjson::dom::element;

/// A quiet log is no blind watch.
constexpr Millis kWordEvery = std::chrono::minutes(1);
/// Answers are logged as requests end, a little out of order.
constexpr Millis kLate = std::chrono::minutes(1);
/// Any time will do, but one before which something may have been.
constexpr MonoTime kAuditBegins{std::chrono::hours(24)};

struct AuditKind {
  std::string_view resource;
  k8s::Kind kind;
};
constexpr AuditKind kAuditKinds[] = {{"pods", k8s::Kind::Pod},
                                     {"resourceclaims", k8s::Kind::ResourceClaim},
                                     {"resourceslices", k8s::Kind::ResourceSlice},
                                     {"nodes", k8s::Kind::Node},
                                     {"namespaces", k8s::Kind::Namespace},
                                     {"devicetaintrules", k8s::Kind::DeviceTaintRule},
                                     {"jobs", k8s::Kind::Job},
                                     {"replicasets", k8s::Kind::ReplicaSet},
                                     {"statefulsets", k8s::Kind::StatefulSet},
                                     {"poddisruptionbudgets", k8s::Kind::PodDisruptionBudget},
                                     {"podgroups", k8s::Kind::PodGroup}};

std::string_view text_at(const Element& json, std::string_view pointer) {
  std::string_view text;
  return json.at_pointer(pointer).get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<std::int64_t> number_at(const Element& json, std::string_view pointer) {
  std::int64_t number = 0;
  return json.at_pointer(pointer).get(number) == simdjson::SUCCESS ? std::optional(number) : std::nullopt;
}

bool has_items_at(const Element& json, std::string_view pointer) {
  simdjson::dom::array list;
  return json.at_pointer(pointer).get(list) == simdjson::SUCCESS && list.size() > 0;
}

/// Whether nothing keeps the object any more: the write that said so was the last of it. **Source:** kubernetes
/// registry/generic/registry/store.go, deletionFinalizersForGarbageCollection and deleteWithoutFinalizers.
bool is_gone(const Element& object, k8s::Kind kind) {
  if (text_at(object, "/metadata/deletionTimestamp").empty() || has_items_at(object, "/metadata/finalizers"))
    return false;
  return kind != k8s::Kind::Pod || number_at(object, "/metadata/deletionGracePeriodSeconds").value_or(0) == 0;
}

/// Whether the request was to change nothing. kubectl and client-go put `dryRun` of a deletion into its options, all
/// else into the query. **Source:** meta/v1 CreateOptions, UpdateOptions, PatchOptions, DeleteOptions.
bool is_dry_run(const Element& event) {
  if (has_items_at(event, "/requestObject/dryRun") && text_at(event, "/requestObject/kind") == "DeleteOptions")
    return true;
  auto rest = text_at(event, "/requestURI");
  const auto query = rest.find('?');
  if (query == std::string_view::npos) return false;
  rest.remove_prefix(query);
  while (!rest.empty()) {
    rest.remove_prefix(1);
    if (rest.starts_with("dryRun=")) return true;
    rest.remove_prefix(std::min(rest.find('&'), rest.size()));
  }
  return false;
}

/// Of the object itself, where a deletion answers with it, or of the Status that tells of it. **Source:** kubernetes
/// registry/generic/registry/store.go, finalizeDelete.
std::string deleted_uid(const Element& event) {
  for (const auto* place : {"/responseObject/metadata/uid", "/responseObject/details/uid", "/objectRef/uid"}) {
    if (const auto uid = text_at(event, place); !uid.empty()) return std::string(uid);
  }
  return {};
}

std::optional<WallTime> time_at(const Element& event) {
  const auto at = parse_rfc3339(text_at(event, "/stageTimestamp"));
  return at ? at : parse_rfc3339(text_at(event, "/requestReceivedTimestamp"));
}

/// What is known of an object by its kind, namespace and name.
struct Latest {
  std::string uid;
  std::string version;
  bool is_gone = false;
};

/// Whether an object tells nothing that is newer. Versions of one kind can be compared over all of its objects, so
/// those of an earlier object of the name too. **Source:** KEP-5504.
bool is_old(const k8s::Meta& meta, const Latest& known) {
  if (known.is_gone && meta.uid == known.uid) return true;
  const auto order = k8s::version_order(meta.resource_version, known.version);
  return order && *order <= 0;
}

}  // namespace

struct AuditReader::State {
  explicit State(Sink to) : sink(std::move(to)) {}

  [[nodiscard]] Status feed(std::string_view line);
  [[nodiscard]] Status begin();
  [[nodiscard]] Status pass_to(WallTime when);
  [[nodiscard]] Status put(Message message);
  [[nodiscard]] Status take();
  [[nodiscard]] Status upsert(k8s::Object object);
  [[nodiscard]] Status remove(k8s::Kind kind, std::string ns, std::string name, std::string uid);
  [[nodiscard]] Status send_gone(k8s::Kind kind, std::string ns, std::string name, std::string uid);
  [[nodiscard]] Status read_object(const Element& object, k8s::Kind kind);
  [[nodiscard]] Status read_list(const Element& list, k8s::Kind kind);
  [[nodiscard]] Status say_all();
  [[nodiscard]] k8s::Decoder& decoder(k8s::Kind kind);

  Sink sink;
  AuditCounts counts;
  simdjson::dom::parser parser;
  std::map<k8s::Kind, k8s::Decoder> decoders;
  std::map<std::tuple<k8s::Kind, std::string, std::string>, Latest> latest;
  std::optional<Now> begun;
  Now now;
  MonoTime said_at;
  std::vector<Line> lines;
};

AuditReader::AuditReader(Sink sink) : state_(std::make_unique<State>(std::move(sink))) {}
AuditReader::~AuditReader() = default;

Status AuditReader::feed(std::string_view line) { return state_->feed(line); }
std::optional<WallTime> AuditReader::time_of(std::string_view line) {
  Element event;
  if (state_->parser.parse(line.data(), line.size()).get(event) != simdjson::SUCCESS) return std::nullopt;
  return time_at(event);
}
const AuditCounts& AuditReader::counts() const { return state_->counts; }

Status AuditReader::State::feed(std::string_view line) {
  Element event;
  if (const auto error = parser.parse(line.data(), line.size()).get(event); error != simdjson::SUCCESS)
    return fail(ErrorKind::Malformed, fmt::format("not JSON: {}", simdjson::error_message(error)));
  if (!text_at(event, "/apiVersion").starts_with("audit.k8s.io/"))
    return fail(ErrorKind::Malformed, "no event of an audit log: apiVersion is not audit.k8s.io/v1");
  const auto stage = text_at(event, "/stage");
  if (!stage.empty() && stage != "ResponseComplete") return {};
  const auto found = std::ranges::find(kAuditKinds, text_at(event, "/objectRef/resource"), &AuditKind::resource);
  if (found == std::end(kAuditKinds) || number_at(event, "/responseStatus/code").value_or(200) >= 300) return {};
  const auto verb = text_at(event, "/verb");
  const auto sub = text_at(event, "/objectRef/subresource");
  const bool writes = verb == "create" || verb == "update" || verb == "patch" || verb == "delete";
  const bool is_tried = is_dry_run(event);
  if (verb == "deletecollection") ++(is_tried ? counts.dry_runs : counts.collections);
  // What binds, evicts or scales answers with no object; what it has done shows in the next write.
  if ((!writes && verb != "list") || (!sub.empty() && sub != "status")) return {};
  if (is_tried) {
    ++counts.dry_runs;
    return {};
  }
  const auto at = time_at(event);
  if (!at) return fail(ErrorKind::Malformed, "stageTimestamp is no time");
  if (auto passed = pass_to(*at); !passed) return passed;
  ++counts.events;
  const auto kind = found->kind;
  Element object;
  const bool has_object = event.at_key("responseObject").get(object) == simdjson::SUCCESS;
  if (verb == "list") {
    if (!has_object) return {};
    ++counts.used;
    return read_list(object, kind);
  }
  // A Status, or a part of the object.
  const bool is_whole =
      has_object && !text_at(object, "/metadata/uid").empty() && text_at(object, "/kind") == k8s::to_string(kind);
  if (verb == "delete" && (!is_whole || !has_items_at(object, "/metadata/finalizers"))) {
    const bool stays =
        is_whole && kind == k8s::Kind::Pod && number_at(object, "/metadata/deletionGracePeriodSeconds").value_or(0) > 0;
    if (!stays) {
      ++counts.used;
      return remove(kind, std::string(text_at(event, "/objectRef/namespace")),
                    std::string(text_at(event, "/objectRef/name")), deleted_uid(event));
    }
  }
  if (!is_whole) {
    ++counts.bare;
    return {};
  }
  ++counts.used;
  return read_object(object, kind);
}

Status AuditReader::State::read_object(const Element& object, k8s::Kind kind) {
  auto read = decoder(kind).decode_object(simdjson::minify(object));
  if (!read) {
    ++counts.unreadable;
    return {};
  }
  const auto& meta = k8s::meta_of(*read);
  if (is_gone(object, kind)) return remove(kind, meta.ns, meta.name, meta.uid);
  return upsert(*std::move(read));
}

Status AuditReader::State::read_list(const Element& list, k8s::Kind kind) {
  auto page = decoder(kind).decode_list(simdjson::minify(list));
  if (!page) {
    ++counts.unreadable;
    return {};
  }
  for (auto& object : page->objects) {
    if (auto done = upsert(std::move(object)); !done) return done;
  }
  return {};
}

Status AuditReader::State::upsert(k8s::Object object) {
  const auto& meta = k8s::meta_of(object);
  const auto kind = k8s::kind_of(object);
  auto& known = latest[{kind, meta.ns, meta.name}];
  if (is_old(meta, known)) {
    ++counts.old;
    return {};
  }
  const auto before = std::exchange(known, {.uid = meta.uid, .version = meta.resource_version});
  // Its deletion is logged later, or never: two of one name there cannot be.
  if (!before.uid.empty() && !before.is_gone && before.uid != meta.uid) {
    if (auto done = send_gone(kind, meta.ns, meta.name, before.uid); !done) return done;
  }
  if (auto done = put(Message(std::in_place_type<k8s::Delivery>, k8s::Upsert{std::move(object)})); !done) return done;
  return take();
}

Status AuditReader::State::remove(k8s::Kind kind, std::string ns, std::string name, std::string uid) {
  auto& known = latest[{kind, ns, name}];
  if (uid.empty()) uid = known.uid;
  if (uid.empty()) return {};  // of what was never seen
  if (known.uid.empty()) known.uid = uid;
  // It was seen to be gone, or to have been followed by another.
  if (known.uid != uid || known.is_gone) return {};
  known.is_gone = true;
  return send_gone(kind, std::move(ns), std::move(name), std::move(uid));
}

Status AuditReader::State::send_gone(k8s::Kind kind, std::string ns, std::string name, std::string uid) {
  k8s::Remove gone{.kind = kind, .ns = std::move(ns), .name = std::move(name), .uid = std::move(uid)};
  if (auto done = put(Message(std::in_place_type<k8s::Delivery>, std::move(gone))); !done) return done;
  return take();
}

Status AuditReader::State::put(Message message) {
  lines.clear();
  put_message(message, 0, lines);
  for (const auto& line : lines) {
    if (auto done = sink(std::string_view(line.text).substr(0, line.text.size() - 1)); !done) return done;
  }
  return {};
}

Status AuditReader::State::take() {
  const auto line = take_line(stamp_of(base_of(*begun), now)).text;
  return sink(std::string_view(line).substr(0, line.size() - 1));
}

Status AuditReader::State::begin() {
  const auto bare = [&](const Line& line) { return sink(std::string_view(line.text).substr(0, line.text.size() - 1)); };
  if (auto done = bare(file_line("audit", 1)); !done) return done;
  if (auto done = bare(base_line(base_of(*begun))); !done) return done;
  for (const auto kind : k8s::kAllKinds) {
    if (kind == k8s::Kind::ConfigMap) continue;
    k8s::Snapshot none;
    none.kind = kind;
    if (kind == k8s::Kind::DeviceTaintRule) none.api_version = "resource.k8s.io/v1";
    if (auto done = put(Message(std::in_place_type<k8s::Delivery>, std::move(none))); !done) return done;
  }
  if (auto done = put(EarlierState{}); !done) return done;
  if (auto done = put(PolicyChanged{std::make_shared<const Policy>()}); !done) return done;
  return say_all();
}

Status AuditReader::State::say_all() {
  said_at = now.mono;
  for (const auto kind : k8s::kAllKinds) {
    k8s::Told told;
    told.kind = kind;
    told.at = now.mono;
    if (auto done = put(Message(std::in_place_type<k8s::Delivery>, told)); !done) return done;
  }
  return take();
}

/// Events stand in the order in which they were over; a few are late.
Status AuditReader::State::pass_to(WallTime when) {
  if (!begun) {
    begun = now = Now{.mono = kAuditBegins, .wall = when};
    return begin();
  }
  if (when + kLate < now.wall) ++counts.late;
  const auto to = std::max(when, now.wall);
  const auto set = [&](WallTime wall) {
    now = {.mono = begun->mono + std::chrono::duration_cast<Millis>(wall - begun->wall), .wall = wall};
  };
  while (now.wall + kWordEvery < to) {
    set(std::max(now.wall, begun->wall + (said_at - begun->mono)) + kWordEvery);
    if (auto said = say_all(); !said) return said;
  }
  set(to);
  return now.mono >= said_at + kWordEvery ? say_all() : Status();
}

k8s::Decoder& AuditReader::State::decoder(k8s::Kind kind) {
  return decoders.try_emplace(kind, kind, kKeptFields).first->second;
}

}  // namespace dhc::record
