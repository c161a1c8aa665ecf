// usage: fleet-year [seeds=20] [days=348] [threads=2] [contenders=nobody,drain,noexecute,ours] [perFault=1] [again=0.5]
//                   [driverTaints=no] [boots=no] [svg=FILE] [trace=FILE]: a fleet's year under each contender, in
//                   Markdown.
#include <atomic>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/fleet_year/report.h"

namespace {

using namespace dhc;
using namespace dhc::year;

struct Wish {
  int seeds = 20;
  int days = 348;
  int threads = 2;
  int per_fault = 1;
  double again = 0.5;
  bool driver_taints = false;
  bool boots = false;
  std::string contenders = "nobody,drain,noexecute,ours";
  std::string svg;
  std::string trace = "bench/traces/infinitehbd/fault_trace.json";
};

constexpr std::string_view kUsage =
    "usage: fleet-year [seeds=20] [days=348] [threads=2] [contenders=nobody,drain,noexecute,ours] [perFault=1]\n"
    "                  [again=0.5] [driverTaints=no] [boots=no] [svg=FILE] [trace=FILE]\n";

template <class Number>
bool read(std::string_view text, Number& value) {
  const auto end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end && value >= 0;
}

bool take(std::string_view argument, Wish& wish) {
  const auto equals = argument.find('=');
  if (equals == std::string_view::npos) return false;
  const auto key = argument.substr(0, equals);
  const auto value = argument.substr(equals + 1);
  if (key == "seeds") return read(value, wish.seeds) && wish.seeds > 0;
  if (key == "days") return read(value, wish.days) && wish.days > 0;
  if (key == "threads") return read(value, wish.threads) && wish.threads > 0;
  if (key == "perFault") return read(value, wish.per_fault) && wish.per_fault > 0;
  if (key == "again") return read(value, wish.again) && wish.again <= 1;
  if (key == "driverTaints") return (wish.driver_taints = value == "yes") || value == "no";
  if (key == "boots") return (wish.boots = value == "yes") || value == "no";
  if (key == "contenders") return !(wish.contenders = value).empty();
  if (key == "svg") return !(wish.svg = value).empty();
  if (key == "trace") return !(wish.trace = value).empty();
  return false;
}

std::optional<std::vector<Runs>> contenders_of(const Wish& wish) {
  static const std::map<std::string, Kind, std::less<>> kNames = {
      {"nobody", Kind::Nobody}, {"drain", Kind::Drain}, {"noexecute", Kind::NoExecute}, {"ours", Kind::Ours}};
  std::vector<Runs> all;
  std::string_view rest = wish.contenders;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto found = kNames.find(rest.substr(0, comma));
    if (found == kNames.end()) return std::nullopt;
    all.push_back({.contender = found->second, .years = std::vector<Year>(static_cast<std::size_t>(wish.seeds))});
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return all;
}

/// Each thread takes the next run that nobody has begun; the first that fails ends all.
std::string run_all(const Wish& wish, const FaultTrace& trace, std::vector<Runs>& all) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::string failure;
  const auto seeds = static_cast<std::size_t>(wish.seeds);
  const auto work = [&] {
    for (auto task = next++; task < seeds * all.size(); task = next++) {
      auto& runs = all[task % all.size()];
      const auto seed = task / all.size();
      Run run;
      run.seed = seed + 1;
      run.spread.length = std::chrono::hours(24) * wish.days;
      run.spread.per_fault = wish.per_fault;
      run.spread.again = wish.again;
      run.shape.driver_taints = wish.driver_taints;
      run.shape.server_boots = wish.boots;
      run.noticed_after = median_length(trace);
      try {
        runs.years[seed] = play(run, trace, runs.contender);
        const std::lock_guard lock(mutex);
        const auto& year = runs.years[seed];
        fmt::print(stderr, "seed {}, {}: {:.0f} s, {} moments, {} turns that asked {} times about a pod\n", run.seed,
                   to_string(runs.contender), year.seconds, year.moments, year.effort.turns, year.effort.asked);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        failure = fmt::format("seed {}, {}: {}", run.seed, to_string(runs.contender), error.what());
        next = seeds * all.size();
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < wish.threads; ++i) threads.emplace_back(work);
  threads.clear();
  return failure;
}

}  // namespace

int main(int argc, char** argv) {
  Wish wish;
  for (int i = 1; i < argc; ++i) {
    if (take(argv[i], wish)) continue;
    fmt::print(stderr, "fleet-year: {} cannot be used\n{}", argv[i], kUsage);
    return 2;
  }
  auto all = contenders_of(wish);
  if (!all) {
    fmt::print(stderr, "fleet-year: contenders={}: name some of nobody, drain, noexecute, ours\n", wish.contenders);
    return 2;
  }
  std::ifstream file(wish.trace, std::ios::binary);
  if (!file) {
    fmt::print(stderr, "{}: cannot be read; run this in the repository's root, or name the file with trace=\n",
               wish.trace);
    return 1;
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto trace = read_faults(text);
  if (!trace) {
    fmt::print(stderr, "{}: {}\n", wish.trace, trace.error());
    return 1;
  }
  if (const auto failure = run_all(wish, *trace, *all); !failure.empty()) {
    fmt::print(stderr, "fleet-year: {}\n", failure);
    return 1;
  }
  fmt::print(
      "{} days, {} seed{}; a fault breaks {} device{}, {:.0f} % of them the server's weak one; a server that failed as "
      "a whole {} at its "
      "repair; the driver {}.\n\n{}",
      wish.days, wish.seeds, wish.seeds == 1 ? "" : "s", wish.per_fault, wish.per_fault == 1 ? "" : "s",
      100 * wish.again, wish.boots ? "boots anew" : "shows no boot",
      wish.driver_taints ? "taints a bad device in its slice" : "reports to the kubelet alone", table_of(*all));
  if (wish.svg.empty()) return 0;
  std::ofstream picture(wish.svg, std::ios::binary);
  picture << picture_of(*all);
  if (picture.flush()) return 0;
  fmt::print(stderr, "{}: cannot be written\n", wish.svg);
  return 1;
}
