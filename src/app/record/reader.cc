#include "app/record/reader.h"

#include <array>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "app/record/line.h"
#include "app/record/text_reader.h"

namespace dhc::record {

namespace {

std::unexpected<Error> bad_line(std::string why) { return fail(ErrorKind::Malformed, std::move(why)); }

/// A value by its fields, or why not.
template <class T>
Result<T> value_of(Json json) {
  T value{};
  TextReader reader;
  reader.value(json, value);
  if (!reader.ok()) return bad_line(reader.fault());
  return value;
}

std::optional<k8s::Kind> kind_named(std::string_view name) {
  for (const auto kind : k8s::kAllKinds) {
    if (k8s::to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

template <class T>
Result<k8s::Object> object_as(Json json) {
  auto value = value_of<T>(json);
  if (!value) return std::unexpected(std::move(value.error()));
  return k8s::Object(*std::move(value));
}

Result<k8s::Object> object_of(k8s::Kind kind, Json json) {
  switch (kind) {
    case k8s::Kind::Pod:
      return object_as<k8s::Pod>(json);
    case k8s::Kind::ResourceClaim:
      return object_as<k8s::ResourceClaim>(json);
    case k8s::Kind::ResourceSlice:
      return object_as<k8s::ResourceSlice>(json);
    case k8s::Kind::Node:
      return object_as<k8s::Node>(json);
    case k8s::Kind::Namespace:
      return object_as<k8s::Namespace>(json);
    case k8s::Kind::DeviceTaintRule:
      return object_as<k8s::DeviceTaintRule>(json);
    case k8s::Kind::Job:
      return object_as<k8s::Job>(json);
    case k8s::Kind::ReplicaSet:
    case k8s::Kind::StatefulSet: {
      auto owner = value_of<k8s::Owner>(json);
      if (!owner) return std::unexpected(std::move(owner.error()));
      owner->kind = kind;
      return k8s::Object(*std::move(owner));
    }
    case k8s::Kind::PodDisruptionBudget:
      return object_as<k8s::DisruptionBudget>(json);
    case k8s::Kind::PodGroup:
      return object_as<k8s::PodGroup>(json);
    case k8s::Kind::ConfigMap:
      return object_as<k8s::ConfigMap>(json);
    case k8s::Kind::Lease:
      break;
  }
  return bad_line("a Lease is not recorded");
}

struct ListHead {
  k8s::Kind kind = k8s::Kind::Pod;
  std::int64_t n = 0;
  bool served = true;
  std::string api;
  bool back = false;
  std::vector<k8s::Unreadable> bad;
};
template <class V>
void fields(V& v, ListHead& x) {
  v("kind", x.kind);
  v("n", x.n);
  v("served", x.served);
  v("api", x.api);
  v("back", x.back);
  v("bad", x.bad);
}

struct AnswerLine {
  std::uint64_t n = 0;
  std::optional<Error> error;
  std::optional<OwnerSight> sight;
  FreshReads reads;
  std::string stored;
};
template <class V>
void fields(V& v, AnswerLine& x) {
  v("n", x.n);
  v("error", x.error);
  v("sight", x.sight);
  v("reads", x.reads);
  v("stored", x.stored);
}

struct RejectedLine {
  std::string why;
  std::optional<Subject> source;
};
template <class V>
void fields(V& v, RejectedLine& x) {
  v("why", x.why);
  v("source", x.source);
}

struct FileLine {
  std::string recording;
  std::int64_t version = 0;
  std::string run;
  std::int64_t file = 1;
  std::string program;
};
template <class V>
void fields(V& v, FileLine& x) {
  v("recording", x.recording);
  v("version", x.version);
  v("run", x.run);
  v("file", x.file);
  v("program", x.program);
}

struct ToldAction {
  std::string name;
  std::string kind;
  std::string ns;
  std::string object;
  std::string uid;
  std::string what;
  std::string policy;
  std::string effect;
  std::int64_t before = 0;
  std::int64_t limit = 0;
};
template <class V>
void fields(V& v, ToldAction& x) {
  v("do", x.name);
  v("kind", x.kind);
  v("ns", x.ns);
  v("name", x.object);
  v("uid", x.uid);
  v("what", x.what);
  v("policy", x.policy);
  v("effect", x.effect);
  v("before", x.before);
  v("limit", x.limit);
}

struct ToldVerdict {
  Subject of;
  std::string device;
  std::string why;
  std::string policy;
  std::string msg;
};
template <class V>
void fields(V& v, ToldVerdict& x) {
  v("of", x.of);
  v("device", x.device);
  v("why", x.why);
  v("policy", x.policy);
  v("msg", x.msg);
}

}  // namespace

struct Reader::Parser {
  simdjson::dom::parser parser;
  Json root;
  std::optional<Base> base;
  std::optional<k8s::Snapshot> list;  // while its objects come
  std::int64_t missing = 0;

  [[nodiscard]] Result<Step> read(std::string_view line);
  [[nodiscard]] Result<Step> read_member(std::string_view key, Json json);
  [[nodiscard]] Result<Step> begin_file(Json json);
  [[nodiscard]] Result<Step> begin_list(Json json);
  [[nodiscard]] Result<Step> take_object(k8s::Kind kind, Json json);
  [[nodiscard]] Result<Stamp> stamp_in(Json json) const;
  [[nodiscard]] Result<Step> idle_in(Json json) const;
};

Reader::Reader() : parser_(std::make_unique<Parser>()) {}
Reader::~Reader() = default;

Result<Step> Reader::read(std::string_view line) { return parser_->read(line); }

Result<Step> Reader::Parser::read(std::string_view line) {
  if (const auto error = parser.parse(line.data(), line.size()).get(root); error != simdjson::SUCCESS)
    return bad_line(fmt::format("not JSON: {}", simdjson::error_message(error)));
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS || object.begin() == object.end()) return bad_line("not an object");
  const auto first = *object.begin();
  const auto key = first.key;
  if (missing > 0 && !kind_named(key))
    return bad_line(fmt::format("a list of {} ends {} objects too early", k8s::to_string(list->kind), missing));
  auto step = read_member(key, key == "recording" ? root : first.value);
  if (!step) step.error().message = fmt::format("{}: {}", key, step.error().message);
  return step;
}

Result<Step> Reader::Parser::read_member(std::string_view key, Json json) {
  const auto message = [](Message one) -> Result<Step> { return Step(MessageStep{.message = std::move(one)}); };
  const auto delivered = [&](auto value) -> Result<Step> {
    if (!value) return std::unexpected(std::move(value.error()));
    return message(Message(std::in_place_type<k8s::Delivery>, *std::move(value)));
  };
  if (key == "recording") return begin_file(json);
  if (key == "begun") return Step(BegunStep{});
  if (key == "list") return begin_list(json);
  if (const auto kind = kind_named(key)) return take_object(*kind, json);
  if (key == "gone") return delivered(value_of<k8s::Remove>(json));
  if (key == "bad") return delivered(value_of<k8s::Unreadable>(json));
  if (key == "told") return delivered(value_of<k8s::Told>(json));
  if (key == "base") {
    const auto parts = value_of<std::vector<std::int64_t>>(json);
    if (!parts || parts->size() != 2) return bad_line("not two whole numbers");
    base = Base{.mono_ms = parts->at(0), .wall_us = parts->at(1)};
    return Step(NoStep{});
  }
  if (key == "take" || key == "plan") {
    const auto stamp = stamp_in(json);
    if (!stamp) return std::unexpected(stamp.error());
    if (key == "take") return Step(TakeStep{.now = now_of(*base, *stamp)});
    return Step(PlanStep{.now = now_of(*base, *stamp), .stamp = *stamp});
  }
  if (key == "idle") return idle_in(json);
  if (key == "answer") {
    auto answer = value_of<AnswerLine>(json);
    if (!answer) return std::unexpected(std::move(answer.error()));
    Outcome outcome{.action = {}, .status = {}};
    if (answer->error) outcome.status = std::unexpected(*std::move(answer->error));
    outcome.sight = std::move(answer->sight);
    outcome.reads = std::move(answer->reads);
    outcome.stored_uid = std::move(answer->stored);
    return Step(MessageStep{.message = std::move(outcome), .answers = answer->n});
  }
  if (key == "policy") {
    auto policy = value_of<Policy>(json);
    if (!policy) return std::unexpected(std::move(policy.error()));
    return message(PolicyChanged{std::make_shared<const Policy>(*std::move(policy))});
  }
  if (key == "rejected") {
    auto refused = value_of<RejectedLine>(json);
    if (!refused) return std::unexpected(std::move(refused.error()));
    return message(PolicyRejected{.why = std::move(refused->why), .source = std::move(refused->source)});
  }
  if (key == "leads") {
    const auto leads = value_of<bool>(json);
    if (!leads) return std::unexpected(leads.error());
    return message(Leading{.leads = *leads});
  }
  if (key == "earlier") {
    auto map = value_of<std::optional<k8s::ConfigMap>>(json);
    if (!map) return std::unexpected(std::move(map.error()));
    return message(EarlierState{.map = *std::move(map)});
  }
  if (key == "clock") {
    const auto ahead = value_of<Millis>(json);
    if (!ahead) return std::unexpected(ahead.error());
    return message(ServerClockSeen{.ahead = *ahead});
  }
  if (key == "webhook") {
    auto problem = value_of<std::string>(json);
    if (!problem) return std::unexpected(std::move(problem.error()));
    return message(WebhookSeen{.problem = *std::move(problem)});
  }
  return bad_line("no line of a recording begins so");
}

Result<Step> Reader::Parser::begin_file(Json json) {
  auto file = value_of<FileLine>(json);
  if (!file) return std::unexpected(std::move(file.error()));
  if (file->recording != "device-health-controller") return bad_line("not a recording of this program");
  if (file->version > kVersion) {
    return fail(ErrorKind::Invalid,
                fmt::format("version {} of the format, written by {}, is newer than version {}, which this program "
                            "reads: replay it with that program or a later one",
                            file->version, file->program.empty() ? "a later program" : file->program, kVersion));
  }
  list.reset();
  missing = 0;
  return Step(FileStep{.run = std::move(file->run), .number = file->file, .program = std::move(file->program)});
}

Result<Step> Reader::Parser::begin_list(Json json) {
  auto head = value_of<ListHead>(json);
  if (!head) return std::unexpected(std::move(head.error()));
  list.emplace();
  list->kind = head->kind;
  list->served = head->served;
  list->api_version = std::move(head->api);
  list->went_back = head->back;
  list->unreadable = std::move(head->bad);
  missing = head->n;
  if (missing > 0) return Step(NoStep{});
  Message message(std::in_place_type<k8s::Delivery>, *std::exchange(list, std::nullopt));
  return Step(MessageStep{.message = std::move(message)});
}

Result<Step> Reader::Parser::take_object(k8s::Kind kind, Json json) {
  auto object = object_of(kind, json);
  if (!object) return std::unexpected(std::move(object.error()));
  if (missing == 0) {
    Message message(std::in_place_type<k8s::Delivery>, k8s::Upsert{*std::move(object)});
    return Step(MessageStep{.message = std::move(message)});
  }
  if (kind != list->kind)
    return bad_line(fmt::format("a list of {} ends {} objects too early", k8s::to_string(list->kind), missing));
  list->objects.push_back(*std::move(object));
  if (--missing > 0) return Step(NoStep{});
  Message message(std::in_place_type<k8s::Delivery>, *std::exchange(list, std::nullopt));
  return Step(MessageStep{.message = std::move(message)});
}

Result<Stamp> Reader::Parser::stamp_in(Json json) const {
  if (!base) return bad_line("it comes before the first `base`");
  const auto parts = value_of<std::vector<std::int64_t>>(json);
  if (!parts || parts->size() != 2) return bad_line("not two whole numbers");
  return Stamp{.ms = parts->at(0), .us = parts->at(1)};
}

Result<Step> Reader::Parser::idle_in(Json json) const {
  if (!base) return bad_line("it comes before the first `base`");
  const auto parts = value_of<std::vector<std::int64_t>>(json);
  if (!parts || parts->size() % 2 != 0) return bad_line("not pairs of whole numbers");
  IdleStep step;
  Stamp stamp;
  for (std::size_t i = 0; i < parts->size(); i += 2) {
    stamp.ms += (*parts)[i];
    stamp.us = (*parts)[i + 1];
    step.times.push_back(now_of(*base, stamp));
  }
  return Step(std::move(step));
}

std::vector<Told> Reader::told() const {
  std::vector<Told> all;
  const auto each = [&](std::string_view key, auto take) {
    simdjson::dom::array list;
    if (parser_->root.at_key(key).get(list) != simdjson::SUCCESS) return;
    for (const Json item : list) take(item);
  };
  each("do", [&](Json item) {
    auto one = value_of<ToldAction>(item);
    if (!one) return;
    all.push_back({.of = Told::Of::Action,
                   .name = std::move(one->name),
                   .subject = {std::move(one->kind), std::move(one->ns), std::move(one->object), std::move(one->uid)},
                   .device = std::move(one->what),
                   .policy = std::move(one->policy),
                   .effect = std::move(one->effect),
                   .message = {},
                   .raised_by = one->limit - one->before});
  });
  const auto verdict = [&](Told::Of of) {
    return [&all, of](Json item) {
      auto one = value_of<ToldVerdict>(item);
      if (!one) return;
      all.push_back({.of = of,
                     .name = std::move(one->why),
                     .subject = std::move(one->of),
                     .device = std::move(one->device),
                     .policy = std::move(one->policy),
                     .effect = {},
                     .message = std::move(one->msg),
                     .raised_by = 0});
    };
  };
  each("say", verdict(Told::Of::Begun));
  each("end", verdict(Told::Of::Ended));
  return all;
}

}  // namespace dhc::record
