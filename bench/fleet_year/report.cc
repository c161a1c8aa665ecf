#include "bench/fleet_year/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace dhc::year {
namespace {

/// The 97.5 % points of Student's t for 1, 2, ... degrees of freedom.
constexpr std::array kT = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                           2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};

const Runs* find(std::span<const Runs> all, Kind kind) {
  const auto found = std::ranges::find(all, kind, &Runs::contender);
  return found == all.end() ? nullptr : &*found;
}

using Figure = std::function<double(const Year&)>;

Estimate estimate_of(const Runs& runs, const Figure& figure) {
  std::vector<double> values;
  for (const auto& year : runs.years) values.push_back(figure(year));
  return estimate(values);
}

std::string shown(const Estimate& one) {
  const int digits = std::abs(one.mean) >= 100 ? 0 : (std::abs(one.mean) >= 10 ? 1 : 2);
  if (one.half_width == 0) return fmt::format("{:.{}f}", one.mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", one.mean, digits, one.half_width, digits);
}

double per(double count, int faults) { return faults == 0 ? 0 : count / faults; }

std::string row(std::string_view name, std::span<const Runs> all, const Figure& figure) {
  std::string text = fmt::format("| {} |", name);
  for (const auto& runs : all) text += fmt::format(" {} |", shown(estimate_of(runs, figure)));
  return text + "\n";
}

std::string rows_of(Cause cause, std::span<const Runs> all) {
  const bool device = cause == Cause::Device;
  const auto faults = device ? "faults of a device" : "faults of a whole server";
  const auto at = static_cast<std::size_t>(cause);
  std::string text = row(fmt::format("**{}**", faults), all, [&](const Year& year) { return year.counts.faults[at]; });
  text += row("GPU-hours lost to them", all, [&](const Year& year) { return year.lost(cause); });
  for (const auto& [use, words] :
       {std::pair{Use::Broken, "of these: the bad devices' own"}, std::pair{Use::Barred, "good devices kept free"},
        std::pair{Use::Stuck, "good devices whose pod holds a bad one"},
        std::pair{Use::Moving, "pods that start or end"}, std::pair{Use::Redone, "work done again"}}) {
    text += row(words, all, [&](const Year& year) { return year.of(use, cause); });
  }
  text += row("pods killed for each", all,
              [&](const Year& year) { return per(year.counts.killed[at], year.counts.faults[at]); });
  text += row("innocent pods killed for each", all,
              [&](const Year& year) { return per(year.counts.innocents[at], year.counts.faults[at]); });
  if (const auto* drain = find(all, Kind::Drain); drain != nullptr && device) {
    text += "| kept of what draining loses, % |";
    for (const auto& runs : all) text += fmt::format(" {} |", shown(kept_of_drain(runs, *drain, true)));
    text += "\n";
  }
  return text;
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return {.mean = mean};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double t = kT[std::min(values.size() - 2, kT.size() - 1)];
  return {.mean = mean, .half_width = t * std::sqrt(squares / (count - 1) / count)};
}

Estimate kept_of_drain(const Runs& runs, const Runs& drain, bool device_faults_alone) {
  const auto lost = [&](const Year& year) {
    return year.lost(Cause::Device) + (device_faults_alone ? 0 : year.lost(Cause::Server));
  };
  std::vector<double> shares;
  for (std::size_t i = 0; i < std::min(runs.years.size(), drain.years.size()); ++i) {
    const double of_drain = lost(drain.years[i]);
    if (of_drain > 0) shares.push_back(100 * (1 - lost(runs.years[i]) / of_drain));
  }
  return estimate(shares);
}

std::string table_of(std::span<const Runs> all) {
  std::string text = "| |";
  std::string rule = "\n|---|";
  for (const auto& runs : all) {
    text += fmt::format(" {} |", to_string(runs.contender));
    rule += "---:|";
  }
  text += rule + "\n" + rows_of(Cause::Device, all) + rows_of(Cause::Server, all);
  text += row("**All**: GPU-hours lost", all,
              [](const Year& year) { return year.lost(Cause::Device) + year.lost(Cause::Server); });
  if (const auto* drain = find(all, Kind::Drain); drain != nullptr) {
    text += "| kept of what draining loses, % |";
    for (const auto& runs : all) text += fmt::format(" {} |", shown(kept_of_drain(runs, *drain, false)));
    text += "\n";
  }
  text += row("GPU-hours of useful work", all, [](const Year& year) { return year.of(Use::Working); });
  text += row("retries taken from Jobs", all, [](const Year& year) { return year.counts.retries; });
  text += row("Jobs lost", all, [](const Year& year) { return year.counts.jobs_lost; });
  text += row("Jobs completed", all, [](const Year& year) { return year.counts.jobs_done; });
  text +=
      row("pods killed on a server without any bad device", all, [](const Year& year) { return year.counts.wrong; });
  text +=
      row("pods given a device that was known to be bad", all, [](const Year& year) { return year.counts.repeats; });
  return text + row("seconds of one core for a run", all, [](const Year& year) { return year.seconds; });
}

std::string picture_of(std::span<const Runs> all) {
  constexpr std::array kShown = {std::pair{Use::Broken, "#8c2d04"}, std::pair{Use::Barred, "#fdae61"},
                                 std::pair{Use::Stuck, "#d7301f"}, std::pair{Use::Moving, "#7fcdbb"},
                                 std::pair{Use::Redone, "#2c7fb8"}};
  constexpr int kWidth = 760;
  constexpr int kLeft = 190;
  constexpr int kBar = 26;
  const auto lost = [](const Runs& runs, Use use) {
    return estimate_of(runs, [&](const Year& year) { return year.of(use); }).mean;
  };
  double most = 1;
  for (const auto& runs : all) {
    double sum = 0;
    for (const auto& [use, colour] : kShown) sum += lost(runs, use);
    most = std::max(most, sum);
  }
  const int height = static_cast<int>(all.size()) * (kBar + 14) + 70;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<title>GPU-hours lost, by contender and by what became of them</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      kWidth, height);
  int y = 12;
  for (const auto& runs : all) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y + 18,
                       to_string(runs.contender));
    double x = kLeft;
    double sum = 0;
    for (const auto& [use, colour] : kShown) {
      const double hours = lost(runs, use);
      const double width = hours / most * (kWidth - kLeft - 90);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}: {:.0f}</title></rect>\n",
          x, y, width, kBar, colour, to_string(use), hours);
      x += width;
      sum += hours;
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{:.0f}</text>\n", x + 6, y + 18, sum);
    y += kBar + 14;
  }
  int x = kLeft;
  for (const auto& [use, colour] : kShown) {
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n", x,
        y + 10, colour, x + 17, y + 21, to_string(use));
    x += 100;
  }
  return svg +
         fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#555555\">GPU-hours lost, mean of the seeds</text>\n</svg>\n",
                     kLeft, y + 46);
}

}  // namespace dhc::year
