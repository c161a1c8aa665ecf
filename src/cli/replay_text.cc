#include "cli/replay_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"
#include "cli/table.h"

namespace dhc::cli {

namespace {
std::string or_nothing(const std::string& line) { return line.empty() ? "nothing new" : line; }
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

}  // namespace dhc::cli
