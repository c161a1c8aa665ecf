#include "cli/plan_text.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/table.h"
#include "domain/policy/config_duration.h"

namespace dhc::cli {

namespace {
using Json = nlohmann::ordered_json;
using Key = std::tuple<Subject, std::string>;
using Reasons = std::vector<const Foreseen*>;

struct Row {
  Reasons today;
  Reasons wanted;
};

constexpr std::array<Reason, 5> kCounted = {Reason::WouldEvict, Reason::WouldTaint, Reason::WouldUntaint,
                                            Reason::WouldCredit, Reason::NoPolicy};

/// Times are read in whole seconds.
Millis shown(Millis time) { return std::chrono::round<Seconds>(time); }

std::map<Key, Row> rows_of(const PlanReport& report) {
  std::map<Key, Row> rows;
  const auto add = [&](const std::optional<PlanSide>& side, Reasons Row::* cell) {
    if (!side) return;
    for (const auto& one : side->foresight.foreseen)
      (rows[{one.verdict.subject, one.verdict.device}].*cell).push_back(&one);
  };
  add(report.today, &Row::today);
  add(report.wanted, &Row::wanted);
  return rows;
}

/// What comes of it: what holds at the end; where nothing does, what was the last to hold.
Reasons outcome_of(const Reasons& all) {
  Reasons last;
  std::ranges::copy_if(all, std::back_inserter(last), [](const Foreseen* one) { return !one->ends; });
  if (last.empty() && !all.empty()) last.push_back(*std::ranges::max_element(all, {}, &Foreseen::ends));
  return last;
}

std::string words_of(const Foreseen& one) {
  auto text = std::string(to_string(one.verdict.reason));
  if (shown(one.begins) > Millis::zero()) text += " in " + format_duration(shown(one.begins));
  if (one.ends) text += ", until " + format_duration(shown(*one.ends)) + " from now";
  return text;
}

std::string cell_of(const Reasons& all) {
  std::string text;
  for (const auto* one : outcome_of(all)) text += (text.empty() ? "" : "; ") + words_of(*one);
  return text.empty() ? "-" : text;
}

std::string subject_words(const Subject& subject) {
  return subject.ns.empty() ? fmt::format("{} {}", subject.kind, subject.name)
                            : fmt::format("{} {}/{}", subject.kind, subject.ns, subject.name);
}

std::size_t count_subjects(const PlanSide& side, Reason reason) {
  std::set<Key> found;
  for (const auto& one : side.foresight.foreseen) {
    if (one.verdict.reason == reason) found.emplace(one.verdict.subject, one.verdict.device);
  }
  return found.size();
}

std::string policies_of(const PlanSide& side) {
  if (side.policies.empty()) return "no policy";
  std::string text;
  for (const auto& [name, mode] : side.policies) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, mode);
  return text;
}

std::string head_of(const PlanReport& report) {
  const auto& foresight = (report.today ? *report.today : *report.wanted).foresight;
  auto text = fmt::format("{}: {} nodes, {} pods with devices, {} of the devices Unhealthy. Nothing was changed.\n",
                          report.cluster, foresight.nodes, foresight.pods, foresight.devices_unhealthy);
  if (report.today) text += fmt::format("TODAY  {}: {}\n", report.today->source, policies_of(*report.today));
  if (report.wanted) text += fmt::format("NEW    {}: {}\n", report.wanted->source, policies_of(*report.wanted));
  for (const auto& remark : report.remarks) text += fmt::format("Note: {}\n", remark);
  return text +
         fmt::format("What each would do within {} if nothing else happens:\n\n", format_duration(report.horizon));
}

void add_messages(std::vector<Line>& lines, std::string_view side, const Reasons& all) {
  for (const auto* one : outcome_of(all)) {
    lines.push_back({fmt::format("     {}{}: {}", side, to_string(one->verdict.reason), one->verdict.message)});
  }
}

std::string rows_text(const PlanReport& report, bool is_wide) {
  const bool both = report.today && report.wanted;
  std::vector<Line> lines = {{"", "SUBJECT", "DEVICE"}};
  if (report.today) lines.front().emplace_back("TODAY");
  if (report.wanted) lines.front().emplace_back("NEW");
  for (const auto& [key, row] : rows_of(report)) {
    const auto& [subject, device] = key;
    const auto today = cell_of(row.today);
    const auto wanted = cell_of(row.wanted);
    lines.push_back({both && today != wanted ? "~" : "", subject_words(subject), device.empty() ? "-" : device});
    if (report.today) lines.back().push_back(today);
    if (report.wanted) lines.back().push_back(wanted);
    if (!is_wide) continue;
    add_messages(lines, both ? "TODAY " : "", row.today);
    add_messages(lines, both ? "NEW   " : "", row.wanted);
  }
  return lines.size() == 1 ? "Nothing: no device calls for it.\n" : table_of(lines);
}

std::string totals_text(const PlanReport& report) {
  std::vector<Line> lines = {{"TOTAL"}};
  if (report.today) lines.front().emplace_back("TODAY");
  if (report.wanted) lines.front().emplace_back("NEW");
  for (const auto reason : kCounted) {
    lines.push_back({std::string(to_string(reason))});
    for (const auto* side : {&report.today, &report.wanted}) {
      if (*side) lines.back().push_back(fmt::format("{}", count_subjects(**side, reason)));
    }
  }
  return table_of(lines);
}

Json json_of(const Foreseen& one) {
  Json json = {{"reason", to_string(one.verdict.reason)},
               {"policy", one.verdict.policy},
               {"message", one.verdict.message},
               {"beginsAfterSeconds", shown(one.begins) / Seconds(1)},
               {"endsAfterSeconds", nullptr}};
  if (one.ends) json["endsAfterSeconds"] = shown(*one.ends) / Seconds(1);
  return json;
}

Json json_of(const PlanSide& side) {
  Json json = {{"source", side.source}, {"policies", Json::array()}, {"totals", Json::object()}};
  for (const auto& [name, mode] : side.policies) json["policies"].push_back({{"name", name}, {"mode", mode}});
  for (const auto reason : kCounted) json["totals"][to_string(reason)] = count_subjects(side, reason);
  return json;
}

Json json_of(const Reasons& all) {
  Json json = Json::array();
  for (const auto* one : all) json.push_back(json_of(*one));
  return json;
}

Json json_of(const PlanReport& report) {
  const auto& foresight = (report.today ? *report.today : *report.wanted).foresight;
  Json json = {{"cluster", report.cluster},
               {"nodes", foresight.nodes},
               {"podsWithDevices", foresight.pods},
               {"devicesUnhealthy", foresight.devices_unhealthy},
               {"horizonSeconds", report.horizon / Seconds(1)},
               {"notes", report.remarks},
               {"today", nullptr},
               {"new", nullptr},
               {"subjects", Json::array()}};
  if (report.today) json["today"] = json_of(*report.today);
  if (report.wanted) json["new"] = json_of(*report.wanted);
  for (const auto& [key, row] : rows_of(report)) {
    const auto& [subject, device] = key;
    Json one = {{"kind", subject.kind}, {"namespace", subject.ns}, {"name", subject.name}, {"device", device}};
    if (report.today) one["today"] = json_of(row.today);
    if (report.wanted) one["new"] = json_of(row.wanted);
    if (report.today && report.wanted) one["differs"] = cell_of(row.today) != cell_of(row.wanted);
    json["subjects"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string plan_text(const PlanReport& report, bool is_wide) {
  return head_of(report) + rows_text(report, is_wide) + "\n" + totals_text(report) +
         "\nLimits, caps and the brake may delay or forbid what WouldTaint, WouldCredit and WouldEvict say.\n";
}

std::string plan_json(const PlanReport& report) { return json_text(json_of(report)) + "\n"; }

std::string plan_yaml(const PlanReport& report) { return yaml_text(json_of(report)); }

}  // namespace dhc::cli
