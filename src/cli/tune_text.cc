#include "cli/tune_text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/policy/config_duration.h"

namespace dhc::cli {

namespace {

using Json = nlohmann::ordered_json;
using tuning::FaultTrace;
using tuning::Point;
using tuning::Sweep;
using Hours = std::chrono::duration<double, std::ratio<3600>>;

constexpr std::size_t kMostDays = 5;

/// What the reader must know before believing a number.
constexpr std::array<std::string_view, 6> kTakenForGranted = {
    "pods want every device all the time, and report it bad from the moment that it is; what is held loses its pods at "
    "once",
    "faults come and are repaired as in the trace, whoever uses the device",
    "no operator acts: nobody acknowledges an incident, and a quarantined device is held to the end of the trace",
    "a repeat failure is a pod on a bad device that had failed before; before the repair: the hold had ended while the "
    "device was still bad, so that the same fault met another pod",
    "held although well: in service and not bad, and kept from pods, by a hold, by a quarantine or until evidence is "
    "believed",
    "brake and caps are counted one by one on what the running choice would have met; whether many faults at once were "
    "real no trace says, so they have no line",
};

std::string hours_text(Millis time) {
  const double hours = Hours(time).count();
  return hours < 10 ? fmt::format("{:.1f}", hours) : fmt::format("{:.0f}", hours);
}

double percent_held(const FaultTrace& trace, const tuning::Outcome& outcome) {
  return 100 * tuning::share_held(trace, outcome);
}

std::string per_year(const FaultTrace& trace, const Point& point) {
  return tuning::tells_of_years(trace) ? fmt::format("{:.0f}", tuning::repeats_a_year(trace, point.outcome)) : "-";
}

std::string unsure(const Point& point) {
  return point.outcome.unsure == 0 ? "" : fmt::format(" (+{} unsure)", point.outcome.unsure);
}

std::string rules_text(const RecoverRules& rules) {
  return fmt::format("hold {}, halfLife {}, quarantineAbove {}", format_duration(rules.hold),
                     format_duration(rules.half_life), rules.quarantine_above);
}

std::string choice_text(const tuning::Choice& choice) {
  return fmt::format("after {}, {}", format_duration(choice.after), rules_text(choice.recover));
}

std::string running_name(const Sweep& sweep) {
  return sweep.running.name.empty() ? "the shipped defaults" : "policy " + sweep.running.name;
}

/// The line, and the running configuration in its place where it is off it.
std::vector<Point> with_running(const tuning::Line& line, tuning::Measure measure) {
  auto points = line.points;
  if (line.distance.is_on_line()) return points;
  const auto cost = measure(line.running.outcome);
  const auto place =
      std::ranges::find_if(points, [&](const Point& point) { return measure(point.outcome).first > cost.first; });
  points.insert(place, line.running);
  return points;
}

std::string mark(const Point& point, const tuning::Line& line) {
  if (!(point.choice == line.running.choice)) return "";
  return line.distance.is_on_line() ? "**running, on the line**" : "**running, off the line**";
}

std::string held_line(const FaultTrace& trace, const tuning::Line& line, bool with_hold) {
  std::string text = fmt::format(
      "| {}halfLife | quarantineAbove | repeat failures | a year | before the repair | held although well, % | "
      "device-hours | quarantined | alike | |\n|{}---|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
      with_hold ? "hold | " : "", with_hold ? "---|" : "");
  for (const auto& point : with_running(line, tuning::held_and_repeats)) {
    const auto& [choice, outcome, alike] = point;
    text += "| ";
    if (with_hold) text += format_duration(choice.recover.hold) + " | ";
    text += fmt::format("{} | {} | {}{} | {} | {} | {:.4f} | {} | {} | {} | {} |\n",
                        format_duration(choice.recover.half_life), choice.recover.quarantine_above, outcome.repeats,
                        unsure(point), per_year(trace, point), outcome.same_fault, percent_held(trace, outcome),
                        hours_text(outcome.held_well), outcome.quarantined, alike, mark(point, line));
  }
  return text;
}

/// How far the running configuration is from the line.
std::string distance_text(const FaultTrace& trace, const tuning::Line& line) {
  if (line.distance.is_on_line()) return "The running configuration is on the line.\n";
  const auto& running = line.running.outcome;
  std::vector<std::string> ways;
  if (const auto& less = line.distance.less_first) {
    ways.push_back(
        fmt::format("{} holds {:.4f} % less ({} device-hours) with {}", choice_text(less->choice),
                    percent_held(trace, running) - percent_held(trace, less->outcome),
                    hours_text(running.held_well - less->outcome.held_well),
                    less->outcome.repeats == running.repeats
                        ? std::string("as many repeat failures")
                        : fmt::format("{} repeat failures instead of {}", less->outcome.repeats, running.repeats)));
  }
  if (const auto& fewer = line.distance.less_second) {
    ways.push_back(fmt::format("{} has {} repeat failures instead of {} and holds {:.4f} % instead of {:.4f} %",
                               choice_text(fewer->choice), fewer->outcome.repeats, running.repeats,
                               percent_held(trace, fewer->outcome), percent_held(trace, running)));
  }
  return fmt::format("The running configuration is off the line: {}.\n", fmt::join(ways, "; "));
}

std::string section(const FaultTrace& trace, const tuning::Line& line, std::string_view title, bool with_hold) {
  return fmt::format(
      "### {}\n\n{} of {} choices are on the line; no choice is better than one of them in both.\n\n{}\n{}\n", title,
      line.points.size(), line.choices, held_line(trace, line, with_hold), distance_text(trace, line));
}

std::string budgets_text(const FaultTrace& trace, const Sweep& sweep) {
  std::string text =
      "### For a bound on what is held\n\nOf the choices that hold at most so much, whoever speaks, the one with the "
      "fewest repeat failures.\n\n| held at most | the choice | repeat failures, nobody speaks | held, % | repeat "
      "failures, the driver speaks | held, % |\n|---|---|---:|---:|---:|---:|\n";
  for (const auto& [percent, silent, spoken] : sweep.budgets) {
    if (!silent) {
      text += fmt::format("| {} % | none | | | | |\n", percent);
      continue;
    }
    text += fmt::format("| {} % | {} | {} | {:.4f} | {} | {:.4f} |\n", percent, rules_text(silent->choice.recover),
                        silent->outcome.repeats, percent_held(trace, silent->outcome), spoken->outcome.repeats,
                        percent_held(trace, spoken->outcome));
  }
  return text + "\n";
}

/// The shortest fault; none: the trace has no lengths.
std::optional<Millis> shortest(const FaultTrace& trace) {
  std::optional<Millis> least;
  if (!trace.has_lengths) return least;
  for (const auto& device : trace.broken) {
    for (const auto& fault : device.faults) {
      const auto length = std::chrono::duration_cast<Millis>(fault.to - fault.from);
      least = std::min(least.value_or(length), length);
    }
  }
  return least;
}

std::string after_text(const FaultTrace& trace, const Sweep& sweep) {
  if (sweep.after.empty()) {
    return "### after\n\nThis trace cannot tell: it does not say how long a fault lasted.\n\n";
  }
  std::string text = "### after\n\n";
  if (const auto least = shortest(trace)) {
    text += fmt::format(
        "The shortest fault lasted {}: of an `after` below that the trace shows what waiting costs, and not what it "
        "saves.\n\n",
        format_duration(std::chrono::round<Seconds>(*least)));
  }
  text +=
      "| after | hours that pods wait on a bad device | incidents, each takes a pod away | faults that passed before | "
      "repeat failures | held although well, % | |\n|---|---:|---:|---:|---:|---:|---|\n";
  const auto& line = sweep.after_line;
  for (const auto& point : sweep.after) {
    const bool is_on_line =
        std::ranges::any_of(line.points, [&](const Point& on) { return on.choice.after == point.choice.after; });
    const auto& outcome = point.outcome;
    const auto place = point.choice == line.running.choice ? mark(point, line) : is_on_line ? "on the line" : "";
    text += fmt::format("| {} | {:.2f} | {} | {} | {}{} | {:.4f} | {} |\n", format_duration(point.choice.after),
                        Hours(outcome.waited).count(), outcome.incidents, outcome.passing, outcome.repeats,
                        unsure(point), percent_held(trace, outcome), place);
  }
  if (!line.distance.is_on_line() && line.distance.less_first) {
    const auto& less = *line.distance.less_first;
    text += fmt::format("\nThe running `after` is off the line by {:.2f} hours: {} has no more incidents.\n",
                        Hours(line.running.outcome.waited - less.outcome.waited).count(),
                        format_duration(less.choice.after));
  }
  return text + "\n";
}

std::string days_text(const std::vector<WallTime>& times) {
  std::vector<std::string> days;
  for (const auto at : times) {
    auto day = format_rfc3339(at).substr(0, 10);
    if (days.empty() || days.back() != day) days.push_back(std::move(day));
  }
  const auto more = days.size() > kMostDays ? days.size() - kMostDays : 0;
  days.resize(days.size() - more);
  return fmt::format("{}{}", fmt::join(days, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

std::string place_text(bool is_running, const std::vector<WallTime>& times) {
  return fmt::format("{}{}{}", is_running ? "**running**" : "", is_running && !times.empty() ? ": " : "",
                     days_text(times));
}

std::string brake_text(const FaultTrace& trace, const Sweep& sweep) {
  const bool knows_nodes = std::ranges::any_of(trace.broken, [](const auto& device) { return !device.node.empty(); });
  std::string text = "### brake\n\n";
  std::string rows;
  std::size_t never = 0;
  for (const auto& [limits, is_running, cluster, node] : sweep.brake) {
    if (cluster.engaged.empty() && node.engaged.empty() && !is_running) {
      ++never;
      continue;
    }
    const auto nodes = knows_nodes ? fmt::format("{}", node.engaged.size()) : std::string("-");
    const auto& times = cluster.engaged.empty() ? node.engaged : cluster.engaged;
    rows += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", format_duration(limits.brake_within),
                        limits.brake_at_least, limits.brake_percent, cluster.engaged.size(), nodes, cluster.most,
                        place_text(is_running, times));
  }
  text += "| within | atLeast | percent | engaged in the cluster | on a node | most at once | days |\n" +
          std::string("|---|---:|---:|---:|---:|---:|---|\n") + rows;
  text += fmt::format("\n{} other choice{} would not have engaged.{}\n\n", never, never == 1 ? "" : "s",
                      knows_nodes ? "" : " The trace does not say which devices share a node.");
  return text;
}

std::string caps_text(const Sweep& sweep) {
  std::string text =
      "### caps\n\n| cap | percent | atLeast | incidents refused | most at once | days "
      "|\n|---|---:|---:|---:|---:|---|\n";
  bool knows_nodes = false;
  for (const auto& [key, cap, is_running, count] : sweep.caps) {
    knows_nodes = knows_nodes || key == "caps.node";
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", key, cap.percent, cap.at_least, count.refused.size(),
                        count.most, place_text(is_running, count.refused));
  }
  if (!knows_nodes) text += "\n`caps.node` is left out: the trace does not say which devices share a node.\n";
  return text + "\n";
}

std::size_t faults_in(const FaultTrace& trace) {
  std::size_t faults = 0;
  for (const auto& device : trace.broken) faults += device.faults.size();
  return faults;
}

Json point_json(const FaultTrace& trace, const Point& point) {
  const auto& [choice, outcome, alike] = point;
  return {{"after", format_duration(choice.after)},
          {"hold", format_duration(choice.recover.hold)},
          {"halfLife", format_duration(choice.recover.half_life)},
          {"quarantineAbove", choice.recover.quarantine_above},
          {"repeatFailures", outcome.repeats},
          {"repeatFailuresAYear",
           tuning::tells_of_years(trace) ? Json(tuning::repeats_a_year(trace, outcome)) : Json(nullptr)},
          {"repeatFailuresBeforeRepair", outcome.same_fault},
          {"unsure", outcome.unsure},
          {"firstFailures", outcome.first},
          {"incidents", outcome.incidents},
          {"passed", outcome.passing},
          {"quarantined", outcome.quarantined},
          {"heldWellShare", tuning::share_held(trace, outcome)},
          {"heldWellHours", Hours(outcome.held_well).count()},
          {"waitedHours", Hours(outcome.waited).count()},
          {"alike", alike}};
}

Json line_json(const FaultTrace& trace, const tuning::Line& line) {
  Json points = Json::array();
  for (const auto& point : line.points) points.push_back(point_json(trace, point));
  const auto or_null = [&](const std::optional<Point>& point) {
    return point ? point_json(trace, *point) : Json(nullptr);
  };
  return {{"choices", line.choices},
          {"line", std::move(points)},
          {"running", point_json(trace, line.running)},
          {"runningIsOnLine", line.distance.is_on_line()},
          {"betterInFirst", or_null(line.distance.less_first)},
          {"betterInSecond", or_null(line.distance.less_second)}};
}

Json times_json(const std::vector<WallTime>& times) {
  Json all = Json::array();
  for (const auto at : times) all.push_back(format_rfc3339(at));
  return all;
}

}  // namespace

std::string tune_text(const FaultTrace& trace, const Sweep& sweep) {
  std::string text = fmt::format(
      "{} {}, {:.0f} days of them in service from {} to {}; {} of them had {} faults. Running: {} ({}).\n\n",
      trace.devices, trace.unit, trace.device_days, format_rfc3339(trace.from).substr(0, 10),
      format_rfc3339(trace.to).substr(0, 10), trace.broken.size(), faults_in(trace), running_name(sweep),
      choice_text(sweep.running.choice));
  for (const auto& remark : trace.remarks) text += fmt::format("- {}\n", remark);
  if (!sweep.running.evicts) {
    text +=
        "- The policy evicts nothing: a pod stays on its bad device and says when it is well, so look at the second "
        "table.\n";
  }
  text +=
      "\n" + section(trace, sweep.silent, "Nobody speaks of a device that is held: the hold ends the incident", true);
  text += section(trace, sweep.spoken, "The driver says when a held device is well: the hold does not matter", false);
  text += budgets_text(trace, sweep);
  text += after_text(trace, sweep);
  text += brake_text(trace, sweep);
  text += caps_text(sweep);
  text += "What is taken for granted:\n\n";
  for (const auto& one : kTakenForGranted) text += fmt::format("- {}\n", one);
  return text;
}

std::string tune_json(const FaultTrace& trace, const Sweep& sweep) {
  Json json = {{"unit", trace.unit},
               {"devices", trace.devices},
               {"deviceDays", trace.device_days},
               {"from", format_rfc3339(trace.from)},
               {"to", format_rfc3339(trace.to)},
               {"broken", trace.broken.size()},
               {"faults", faults_in(trace)},
               {"policy", sweep.running.name.empty() ? Json(nullptr) : Json(sweep.running.name)},
               {"nobodySpeaks", line_json(trace, sweep.silent)},
               {"driverSpeaks", line_json(trace, sweep.spoken)},
               {"budgets", Json::array()},
               {"after", sweep.after.empty() ? Json(nullptr) : line_json(trace, sweep.after_line)},
               {"afterValues", Json::array()},
               {"brake", Json::array()},
               {"caps", Json::array()},
               {"remarks", trace.remarks}};
  for (const auto& [percent, silent, spoken] : sweep.budgets) {
    json["budgets"].push_back({{"heldAtMostPercent", percent},
                               {"nobodySpeaks", silent ? point_json(trace, *silent) : Json(nullptr)},
                               {"driverSpeaks", spoken ? point_json(trace, *spoken) : Json(nullptr)}});
  }
  for (const auto& point : sweep.after) json["afterValues"].push_back(point_json(trace, point));
  for (const auto& [limits, is_running, cluster, node] : sweep.brake) {
    json["brake"].push_back({{"within", format_duration(limits.brake_within)},
                             {"atLeast", limits.brake_at_least},
                             {"percent", limits.brake_percent},
                             {"isRunning", is_running},
                             {"engagedInCluster", times_json(cluster.engaged)},
                             {"engagedOnNodes", times_json(node.engaged)},
                             {"mostAtOnce", cluster.most}});
  }
  for (const auto& [key, cap, is_running, count] : sweep.caps) {
    json["caps"].push_back({{"cap", key},
                            {"percent", cap.percent},
                            {"atLeast", cap.at_least},
                            {"isRunning", is_running},
                            {"refused", times_json(count.refused)},
                            {"mostAtOnce", count.most}});
  }
  return json_text(json) + "\n";
}

}  // namespace dhc::cli
