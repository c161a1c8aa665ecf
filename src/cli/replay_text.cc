#include "cli/replay_text.h"

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"
#include "cli/table.h"

namespace dhc::cli {

namespace {
std::string or_nothing(const std::string& line) { return line.empty() ? "nothing new" : line; }

using record::Fate;
using Json = nlohmann::ordered_json;

/// What the reader must know before believing a number.
constexpr std::array<std::string_view, 7> kAssumptions = {
    "pods live and end as recorded, but for those that one of the two evicts: a pod that the other configuration "
    "evicts "
    "ends with its grace period, and the recorded replacement comes when it came",
    "a pod that only the recorded configuration has evicted goes on, on its device, until the recording gives that "
    "device "
    "to another pod or ends",
    "devices break and recover as recorded; with the same pods on them, whoever is evicted when",
    "every request of the other configuration succeeds at once, and PodDisruptionBudgets allow what they were recorded "
    "to "
    "allow",
    "the other configuration acts as far as its policies say (--mode enforce), whatever the recorded controller was "
    "allowed; operators' pauses and releases hold as recorded",
    "an owner that was not read then has not opted out",
    "held bad: all devices of a pod, while its status calls one of them Unhealthy; work ended: all devices of an "
    "evicted "
    "pod, since it was created, which is lost only as far as it was not saved",
};

enum class Change { Same, More, Less, Earlier, Later, Reason };

Change change_of(const Fate& fate) {
  if (fate.then && !fate.now) return Change::Less;
  if (!fate.then && fate.now) return Change::More;
  if (fate.then && fate.now) {
    const auto later = *fate.now - *fate.then;
    if (std::chrono::abs(later) <= record::kSameTime) return Change::Same;
    return later.count() > 0 ? Change::Later : Change::Earlier;
  }
  return fate.then_why == fate.now_why ? Change::Same : Change::Reason;
}

std::string done_word(Fate::Of of) {
  return of == Fate::Of::Eviction ? "evicted" : of == Fate::Of::Taint ? "tainted" : "credited";
}

/// What became of it on one side.
std::string side_text(const Fate& fate, const std::optional<WallTime>& at, const std::string& why) {
  if (at) return done_word(fate.of) + " " + format_rfc3339(*at);
  return why.empty() ? "-" : why;
}

std::string change_text(const Fate& fate) {
  const auto by = [&] {
    return age_text(std::chrono::duration_cast<Millis>(std::chrono::abs(*fate.now - *fate.then)));
  };
  switch (change_of(fate)) {
    case Change::Same:
      return "same";
    case Change::More:
      return done_word(fate.of) + " now, not then";
    case Change::Less:
      return done_word(fate.of) + " then, not now" + (fate.now_why.empty() ? "" : ": " + fate.now_why);
    case Change::Earlier:
      return by() + " earlier";
    case Change::Later:
      return by() + " later";
    case Change::Reason:
      return "held by another reason";
  }
  std::unreachable();
}

std::string_view change_word(Change change) {
  switch (change) {
    case Change::Same:
      return "same";
    case Change::More:
      return "onlyNow";
    case Change::Less:
      return "onlyThen";
    case Change::Earlier:
      return "earlier";
    case Change::Later:
      return "later";
    case Change::Reason:
      return "reason";
  }
  std::unreachable();
}

std::string subject_text(const Subject& subject) {
  return fmt::format("{} {}{}{}", subject.kind, subject.ns, subject.ns.empty() ? "" : "/", subject.name);
}

Line sum_line(std::string name, double then, double now, bool is_whole) {
  const auto text = [&](double number) {
    return is_whole ? fmt::format("{:.0f}", number) : fmt::format("{:.1f}", number);
  };
  // What is too little to be shown has no sign.
  auto difference = text(now - then);
  if (difference == text(-0.0)) difference = text(0);
  const bool is_more = now > then && difference != text(0);
  return {std::move(name), text(then), text(now), (is_more ? "+" : "") + difference};
}

Json side_json(const record::Side& side) {
  return {{"evictions", side.evictions},
          {"taints", side.taints},
          {"credits", side.credits},
          {"deviceHoursHeldBad", side.held_bad},
          {"deviceHoursOfWorkEnded", side.work_ended}};
}

Json time_json(const std::optional<WallTime>& at) { return at ? Json(format_rfc3339(*at)) : Json(nullptr); }
}  // namespace

std::string rerun_text(const record::RerunReport& report, const std::vector<std::string>& remarks) {
  std::string text = fmt::format("{} run{} in {} file{}, {} to {}: {} lines, {} plans\n", report.runs,
                                 report.runs == 1 ? "" : "s", report.files, report.files == 1 ? "" : "s",
                                 time_text(report.from), time_text(report.to), report.lines, report.plans);
  for (const auto& [name, count] : report.actions) text += fmt::format("  {:<16} {}\n", name, count);
  for (const auto& remark : remarks) text += "note: " + remark + "\n";
  if (report.not_compared > 0) {
    text += fmt::format(
        "note: of {} run{} the first file is gone: what was remembered before it is not known, and its decisions are "
        "not "
        "compared\n",
        report.not_compared, report.not_compared == 1 ? "" : "s");
  }
  if (report.not_compared == report.runs) return text;
  if (report.differences == 0) return text + "The replay decides the same at every moment.\n";
  text += fmt::format("The replay decides otherwise {} times:\n", report.differences);
  for (const auto& one : report.first) {
    text += fmt::format("{}\n  recorded: {}\n  replayed: {}\n", format_rfc3339(one.at), or_nothing(one.recorded),
                        or_nothing(one.rerun));
  }
  if (report.differences > report.first.size())
    text += fmt::format("and {} more\n", report.differences - report.first.size());
  return text;
}

std::string rerun_json(const record::RerunReport& report, const std::vector<std::string>& remarks) {
  nlohmann::ordered_json json = {{"runs", report.runs},
                                 {"files", report.files},
                                 {"programs", report.programs},
                                 {"from", time_text(report.from)},
                                 {"to", time_text(report.to)},
                                 {"lines", report.lines},
                                 {"plans", report.plans},
                                 {"actions", report.actions},
                                 {"runsNotCompared", report.not_compared},
                                 {"differences", report.differences},
                                 {"first", nlohmann::ordered_json::array()},
                                 {"remarks", remarks}};
  for (const auto& one : report.first) {
    json["first"].push_back({{"at", format_rfc3339(one.at)}, {"recorded", one.recorded}, {"replayed", one.rerun}});
  }
  return json_text(json) + "\n";
}

std::string rehearsal_text(const record::RehearsalReport& report, const std::vector<std::string>& remarks) {
  std::string text = fmt::format("{} to {}, {} run{}; then: ", time_text(report.from), time_text(report.to),
                                 report.runs, report.runs == 1 ? "" : "s");
  for (const auto& policy : report.policies_then) text += (text.ends_with(": ") ? "" : ", ") + policy;
  text += report.policies_then.empty() ? "no policy\n\n" : "\n\n";
  std::vector<Line> rows = {{"SUBJECT", "DEVICE", "BAD SINCE", "THEN", "NOW", "DIFFERENCE"}};
  std::size_t same = 0;
  for (const auto& fate : report.fates) {
    if (change_of(fate) == Change::Same) {
      ++same;
      continue;
    }
    rows.push_back({subject_text(fate.subject), or_dash(fate.device), time_text(fate.bad_at),
                    side_text(fate, fate.then, fate.then_why), side_text(fate, fate.now, fate.now_why),
                    change_text(fate)});
  }
  if (rows.size() > 1) text += table_of(rows) + "\n";
  text += rows.size() == 1 ? fmt::format("No difference: {} pods, devices and Jobs fare the same.\n\n", same)
                           : fmt::format("{} more fare the same.\n\n", same);
  text += table_of(
      {{"", "THEN", "NOW", "DIFFERENCE"},
       sum_line("evictions", static_cast<double>(report.then.evictions), static_cast<double>(report.now.evictions),
                true),
       sum_line("taints", static_cast<double>(report.then.taints), static_cast<double>(report.now.taints), true),
       sum_line("credits", static_cast<double>(report.then.credits), static_cast<double>(report.now.credits), true),
       sum_line("device-hours held bad", report.then.held_bad, report.now.held_bad, false),
       sum_line("device-hours of work ended, at most", report.then.work_ended, report.now.work_ended, false)});
  text += "\nTHEN is what was done, as recorded. NOW is what the other configuration would have done, if:\n";
  for (const auto& one : kAssumptions) text += fmt::format("- {}\n", one);
  if (report.left_out > 0) {
    text += fmt::format(
        "note: {} run{} left out: they overlap with one that was played. Replay one replica's files alone\n",
        report.left_out, report.left_out == 1 ? "" : "s");
  }
  for (const auto& remark : remarks) text += "note: " + remark + "\n";
  return text;
}

std::string rehearsal_json(const record::RehearsalReport& report, const std::vector<std::string>& remarks) {
  Json json = {{"runs", report.runs},
               {"runsLeftOut", report.left_out},
               {"from", time_json(report.from)},
               {"to", time_json(report.to)},
               {"policiesThen", report.policies_then},
               {"then", side_json(report.then)},
               {"now", side_json(report.now)},
               {"fates", Json::array()},
               {"assumptions", kAssumptions},
               {"remarks", remarks}};
  for (const auto& fate : report.fates) {
    json["fates"].push_back({{"what", done_word(fate.of)},
                             {"kind", fate.subject.kind},
                             {"namespace", fate.subject.ns},
                             {"name", fate.subject.name},
                             {"uid", fate.subject.uid},
                             {"device", fate.device},
                             {"badSince", time_json(fate.bad_at)},
                             {"then", time_json(fate.then)},
                             {"now", time_json(fate.now)},
                             {"thenReason", fate.then_why},
                             {"nowReason", fate.now_why},
                             {"nowMessage", fate.now_message},
                             {"difference", change_word(change_of(fate))}});
  }
  return json_text(json) + "\n";
}

}  // namespace dhc::cli
