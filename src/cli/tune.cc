#include "cli/tune.h"

#include <algorithm>
#include <array>
#include <expected>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/record/fault_reader.h"
#include "app/record/lines.h"
#include "cli/config_files.h"
#include "cli/record_reading.h"
#include "cli/tune_text.h"
#include "domain/policy/config_text.h"
#include "domain/tuning/published_traces.h"

namespace dhc::cli {

namespace {

// Ten times the largest trace that is known; this bounds what is held of a device or a pipe without end.
constexpr std::size_t kMostTrace = std::size_t{64} << 20U;

/// The policy that runs, and its limits.
std::expected<tuning::Running, Printed> read_running(const TuneOptions& options) {
  if (options.files.empty()) {
    if (!options.policy.empty())
      return std::unexpected(failure(fmt::format("--policy {} needs its configuration: give -f FILE", options.policy)));
    return tuning::running_of(nullptr, {});
  }
  auto config = read_config_files(options.files);
  if (!config) return std::unexpected(failure(config.error().message));
  if (!*config) {
    Printed printed{.code = 1, .out = {}, .err = {}};
    for (const auto& mistake : config->error()) printed.err += format_mistake(mistake) + "\n";
    return std::unexpected(std::move(printed));
  }
  const auto& policies = (*config)->policies;
  std::vector<std::string> names;
  for (const auto& policy : policies) names.push_back(policy.name);
  if (policies.empty()) return std::unexpected(failure("the configuration has no DeviceHealthPolicy to tune"));
  if (options.policy.empty() && policies.size() > 1) {
    return std::unexpected(failure(fmt::format("the configuration has {} policies: name one by --policy: {}",
                                               policies.size(), fmt::join(names, ", "))));
  }
  const auto found =
      options.policy.empty() ? policies.begin() : std::ranges::find(policies, options.policy, &DevicePolicy::name);
  if (found == policies.end()) {
    return std::unexpected(failure(
        fmt::format("the configuration has no policy '{}': it has {}", options.policy, fmt::join(names, ", "))));
  }
  if (!found->taint) {
    return std::unexpected(failure(fmt::format(
        "policy {} taints nothing, so it holds no device: give it spec.taint, or another policy", found->name)));
  }
  return tuning::running_of(&*found, (*config)->limits);
}

Result<tuning::FaultTrace> read_recordings(const std::vector<std::string>& files) {
  std::vector<std::string> remarks;
  record::FaultReader reader;
  const auto read = read_lines(
      files, [&](std::string_view line) { return reader.feed(line); },
      [&](std::string text) { remarks.push_back(std::move(text)); });
  if (!read) return std::unexpected(read.error());
  auto trace = reader.finish();
  trace.remarks.insert(trace.remarks.end(), remarks.begin(), remarks.end());
  return trace;
}

/// Whether the file is a recording, by how it begins; an error: it cannot be opened.
Result<bool> is_recording_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return fail(ErrorKind::Invalid, fmt::format("{}: cannot be opened", name));
  std::array<char, record::kTellingStart> start{};
  file.read(start.data(), start.size());
  return record::is_recording({start.data(), static_cast<std::size_t>(file.gcount())});
}

Result<tuning::FaultTrace> read_trace(const std::vector<std::string>& paths) {
  const auto files = recordings_of(paths);
  if (!files) return std::unexpected(files.error());
  const auto is_recording = is_recording_file(files->front());
  if (!is_recording) return std::unexpected(is_recording.error());
  if (*is_recording) return read_recordings(*files);
  const auto& name = files->front();
  if (files->size() > 1)
    return fail(ErrorKind::Invalid, fmt::format("{}: a trace is given alone, without other files", name));
  std::ifstream file(name, std::ios::binary);
  std::string text(kMostTrace + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(ErrorKind::Invalid, fmt::format("{}: cannot be read", name));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostTrace) return fail(ErrorKind::Invalid, fmt::format("{}: larger than 64 MiB", name));
  auto trace = tuning::read_published(text);
  if (!trace) return fail(ErrorKind::Invalid, fmt::format("{}: {}", name, trace.error()));
  return *std::move(trace);
}

}  // namespace

Printed tune(const TuneOptions& options) {
  auto grid = tuning::default_grid();
  for (const auto& axis : options.sweep) {
    if (const auto taken = tuning::take_axis(grid, axis); !taken) return failure("--sweep " + taken.error());
  }
  if (const auto size = tuning::check_size(grid); !size) return failure("--sweep: " + size.error());
  const auto running = read_running(options);
  if (!running) return running.error();
  const auto trace = read_trace(options.paths);
  if (!trace) return failure(trace.error().message);
  if (trace->broken.empty()) {
    return failure(fmt::format("{}: no device broke in it, so there is nothing to weigh: give a longer one",
                               options.paths.front()));
  }
  const auto swept = tuning::sweep(*trace, *running, grid);
  return {.code = 0, .out = options.is_json ? tune_json(*trace, swept) : tune_text(*trace, swept), .err = {}};
}

}  // namespace dhc::cli
