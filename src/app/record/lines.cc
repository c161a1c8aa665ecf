#include "app/record/lines.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/describe.h"
#include "app/record/codes.h"
#include "app/record/text_writer.h"
#include "app/verdict_changes.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "base/version.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"

namespace dhc::record {

namespace {

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; });
}

/// One member whose value `put` writes.
template <class Put>
Line line_of(What what, std::string_view key, Put put) {
  Line line{.what = what, .key = {}, .text = "{"};
  TextWriter writer(line.text);
  writer.begin_member(key);
  put(writer);
  line.text += "}\n";
  return line;
}

template <class T>
Line line_of_value(What what, std::string_view key, T& value) {
  return line_of(what, key, [&](TextWriter& writer) { writer.value(value); });
}

void put_stamp(TextWriter& writer, const Stamp& stamp) {
  std::vector<std::int64_t> parts = {stamp.ms, stamp.us};
  writer.value(parts);
}

std::string key_of_object(k8s::Kind kind, std::string_view uid) {
  std::string key(k8s::to_string(kind));
  key += '/';
  key += uid;
  return key;
}

/// Of others' ConfigMaps nothing is read here, whoever might deliver them one day.
void strip_config(k8s::ConfigMap& map) {
  if (map.meta.name != kIncidentsName && map.meta.name != kStateName) map.data.clear();
}

void put_object(k8s::Object& object, std::vector<Line>& out) {
  const auto kind = k8s::kind_of(object);
  const auto key = key_of_object(kind, k8s::meta_of(object).uid);
  std::visit(
      [&]<class T>(T& one) {
        if constexpr (!std::is_same_v<T, k8s::Lease>) {
          if constexpr (std::is_same_v<T, k8s::ConfigMap>) strip_config(one);
          out.push_back(line_of_value(What::Object, k8s::to_string(kind), one));
          out.back().key = key;
        }
      },
      object);
}

bool matters(const k8s::Object& object) {
  const auto* pod = std::get_if<k8s::Pod>(&object);
  return pod == nullptr || k8s::is_kept_whole(*pod) || !pod->plugin_folders.empty();
}

void put_list(k8s::Snapshot& list, std::vector<Line>& out) {
  const auto at = out.size();
  out.emplace_back();
  for (auto& object : list.objects) {
    if (matters(object)) put_object(object, out);
  }
  auto count = static_cast<std::int64_t>(out.size() - at - 1);
  std::string members = "{";
  TextWriter inner(members);
  inner.always("kind", list.kind);
  inner.always("n", count);
  inner.always("served", list.served);
  inner("api", list.api_version);
  inner("back", list.went_back);
  inner("bad", list.unreadable);
  members += '}';
  out[at] = line_of(What::List, "list", [&](TextWriter& writer) { writer.raw(members); });
  out[at].key = k8s::to_string(list.kind);
}

void put_delivery(k8s::Delivery& delivery, std::vector<Line>& out) {
  if (auto* list = std::get_if<k8s::Snapshot>(&delivery)) {
    put_list(*list, out);
  } else if (auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
    put_object(upsert->object, out);
  } else if (auto* gone = std::get_if<k8s::Remove>(&delivery)) {
    out.push_back(line_of_value(What::Gone, "gone", *gone));
    out.back().key = key_of_object(gone->kind, gone->uid);
  } else if (auto* bad = std::get_if<k8s::Unreadable>(&delivery)) {
    out.push_back(line_of_value(What::Bad, "bad", *bad));
  } else if (auto* told = std::get_if<k8s::Told>(&delivery)) {
    out.push_back(line_of_value(What::Told, "told", *told));
    out.back().key = key_of_object(told->kind, told->name);
  }
}

void put_answer(Outcome& outcome, std::uint64_t number, std::vector<Line>& out) {
  Line line{.what = What::Answer, .key = {}, .text = "{\"answer\":{"};
  TextWriter writer(line.text);
  writer.always("n", number);
  if (!outcome.status) writer.always("error", outcome.status.error());
  writer("sight", outcome.sight);
  writer("reads", outcome.reads);
  writer("stored", outcome.stored_uid);
  line.text += "}}\n";
  out.push_back(std::move(line));
}

/// How long a text is, and what tells it from others.
std::string print_of(std::string_view text) { return fmt::format("{}:{:x}", text.size(), stable_hash(text)); }

/// What an action says beyond its facts; never a version, which moves with every write of others.
struct Details {
  TextWriter& v;
  void operator()(const eviction::EvictPod& x) const {
    put("grace", x.grace_period_seconds);
    put("shared", x.shared_claim_uid);
    put("workload", x.workload);
    if (x.notice) put("noticed", x.notice->at);
  }
  void operator()(const notice::ApplyCondition& x) const {
    if (x.wanted) {
      put("status", x.wanted->status);
      put("reason", x.wanted->reason);
      put("msg", x.wanted->message);
      put("at", x.wanted->last_transition);
      put("told", x.wanted->noticed_at);
    }
    put("notice", x.notice);
  }
  void operator()(const notice::EmitEvent& x) const {
    put("of", x.name);
    put("warning", x.warning);
    put("action", x.action);
    put("note", x.note);
  }
  void operator()(const taint::ApplyRule& x) const {
    put("effect", x.effect);
    put("said", x.said);
    put("identity", x.identity);
    put("since", x.since);
    put("incidents", x.incidents);
    if (!x.same_card_as.empty()) put("sameCardAs", x.same_card_as);
  }
  void operator()(const taint::DeleteRule&) const {}
  void operator()(const taint::PatchNodeTaint& x) const { put("add", x.add); }
  void operator()(const hand_over::ApplyNodeConditions& x) const {
    std::vector<std::string> said;
    for (const auto& one : x.conditions) said.push_back(one.type + "=" + one.status + ": " + one.message);
    put("conditions", said);
  }
  void operator()(const hand_over::MakeObject& x) const {
    put("slot", x.object.slot);
    put("api", x.object.api_version);
    put("text", print_of(x.text));
  }
  void operator()(const hand_over::RemoveObject& x) const {
    put("slot", x.object.slot);
    put("api", x.object.api_version);
  }
  void operator()(const incident_state::WriteState& x) const {
    put("text", print_of(x.text));
    put("revision", x.revision);
    put("left", x.left_out);
  }
  void operator()(const job_retry::PatchJob& x) const {
    put("before", x.limit_before);
    put("limit", x.limit);
    std::vector<std::string> notes;
    for (const auto& note : x.notes) notes.push_back(note.annotation + "=" + note.text);
    put("notes", notes);
  }
  void operator()(const job_retry::RecreateJob&) const {}
  void operator()(const owners::ReadOwner& x) const { put("owner", x.owner); }
  void operator()(const status::WriteStatus& x) const { put("text", print_of(x.text)); }

  template <class T>
  void put(std::string_view key, T field) const {
    v(key, field);
  }
};

void put_action(const Action& action, TextWriter& v) {
  const auto facts = facts_of(action);
  const auto put = [&](std::string_view key, std::string text) { v(key, text); };
  put("do", std::string(facts.name));
  put("kind", std::string(facts.kind));
  put("ns", std::string(facts.ns));
  put("name", std::string(facts.object));
  put("uid", std::string(facts.uid));
  put("what", std::string(facts.what));
  put("policy", std::string(facts.policy));
  std::visit(Details{v}, action);
}

void put_verdict(const Verdict& verdict, bool is_whole, TextWriter& v) {
  auto subject = verdict.subject;
  v.always("of", subject);
  const auto put = [&](std::string_view key, auto field) { v(key, field); };
  put("device", verdict.device);
  put("why", std::string(to_string(verdict.reason)));
  if (!is_whole) return;
  put("policy", verdict.policy);
  put("mode", std::string(verdict.mode));
  put("gate", std::string(verdict.gate));
  put("msg", verdict.message);
  put("since", verdict.since);
  put("next", verdict.next_at);
  put("in", verdict.containers);
}

template <class List, class Put>
void put_each(TextWriter& v, std::string& text, std::string_view key, const List& list, Put put) {
  if (list.empty()) return;
  v.begin_member(key);
  text += '[';
  for (const auto& item : list) {
    if (text.back() != '[') text += ',';
    text += '{';
    put(item);
    text += '}';
  }
  text += ']';
}

}  // namespace

void put_string(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += json_text(nlohmann::ordered_json(std::string(text)));
  }
}

std::string name_of_time(WallTime at) {
  auto text = format_rfc3339(at);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

bool is_recording(std::string_view start) { return start.starts_with(R"({"recording":"device-health-controller")"); }

Line file_line(std::string_view run, std::int64_t number) {
  return {.what = What::File,
          .key = {},
          .text = json_text({{"recording", "device-health-controller"},
                             {"version", kVersion},
                             {"run", std::string(run)},
                             {"file", number},
                             {"program", std::string(version())}}) +
                  "\n"};
}

Line base_line(const Base& base) {
  std::vector<std::int64_t> parts = {base.mono_ms, base.wall_us};
  return line_of_value(What::Base, "base", parts);
}

Line take_line(const Stamp& stamp) {
  return line_of(What::Take, "take", [&](TextWriter& writer) { put_stamp(writer, stamp); });
}

Line begun_line() { return {.what = What::Begun, .key = {}, .text = "{\"begun\":true}\n"}; }

/// As what has passed since the one before.
Line idle_line(std::span<const Stamp> stamps) {
  std::vector<std::int64_t> parts;
  std::int64_t before = 0;
  for (const auto& stamp : stamps) {
    parts.push_back(stamp.ms - std::exchange(before, stamp.ms));
    parts.push_back(stamp.us);
  }
  return line_of_value(What::Idle, "idle", parts);
}

void put_message(Message& message, std::uint64_t answers, std::vector<Line>& out) {
  if (auto* delivery = std::get_if<k8s::Delivery>(&message)) {
    put_delivery(*delivery, out);
  } else if (auto* outcome = std::get_if<Outcome>(&message)) {
    put_answer(*outcome, answers, out);
  } else if (auto* changed = std::get_if<PolicyChanged>(&message)) {
    auto policy = *changed->policy;
    out.push_back(line_of_value(What::Policy, "policy", policy));
  } else if (auto* refused = std::get_if<PolicyRejected>(&message)) {
    out.push_back(line_of(What::Rejected, "rejected", [&](TextWriter& writer) {
      std::string members = "{";
      TextWriter inner(members);
      inner.always("why", refused->why);
      inner("source", refused->source);
      writer.raw(members + "}");
    }));
  } else if (auto* leading = std::get_if<Leading>(&message)) {
    out.push_back(line_of_value(What::Leads, "leads", leading->leads));
  } else if (auto* earlier = std::get_if<EarlierState>(&message)) {
    out.push_back(line_of_value(What::Earlier, "earlier", earlier->map));
  } else if (auto* clock = std::get_if<ServerClockSeen>(&message)) {
    out.push_back(line_of_value(What::Clock, "clock", clock->ahead));
  } else if (auto* webhook = std::get_if<WebhookSeen>(&message)) {
    out.push_back(line_of_value(What::Webhook, "webhook", webhook->problem));
  }
}

std::string action_key(const Action& action) {
  const auto facts = facts_of(action);
  std::string key;
  for (const auto part : {facts.name, facts.kind, facts.ns, facts.object, facts.uid, facts.what}) {
    key += part;
    key += '\n';
  }
  if (const auto* event = std::get_if<notice::EmitEvent>(&action)) key += event->name;
  // Of two reads the later one may be answered first.
  if (const auto* read = std::get_if<owners::ReadOwner>(&action))
    key += std::to_string(read->asked_at.time_since_epoch().count());
  return key;
}

std::optional<Line> Decisions::line(const Turn& turn, const std::vector<Verdict>& verdicts, const Stamp& stamp) {
  const bool is_same = said_ == verdicts;
  auto changes = is_same ? VerdictChanges{} : changes_between(said_, verdicts);
  if (!is_same) said_ = verdicts;
  if (turn.actions.empty() && changes.begun.empty() && changes.ended.empty()) return std::nullopt;
  Line line{.what = What::Plan, .key = {}, .text = "{\"plan\":"};
  TextWriter writer(line.text);
  put_stamp(writer, stamp);
  put_each(writer, line.text, "do", turn.actions, [&](const Action& action) { put_action(action, writer); });
  put_each(writer, line.text, "say", changes.begun,
           [&](const Verdict& verdict) { put_verdict(verdict, true, writer); });
  put_each(writer, line.text, "end", changes.ended,
           [&](const Verdict& verdict) { put_verdict(verdict, false, writer); });
  line.text += "}\n";
  return line;
}

}  // namespace dhc::record
