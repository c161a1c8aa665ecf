#include "cli/replay.h"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/policy_desk.h"
#include "app/record/rehearsal.h"
#include "app/record/rerun.h"
#include "cli/config_files.h"
#include "cli/record_reading.h"
#include "cli/replay_text.h"
#include "domain/policy/config_text.h"

namespace dhc::cli {

namespace {

/// The policy of the files, or all of their mistakes.
std::expected<Policy, Printed> wanted_policy(const std::vector<std::string>& names) {
  auto config = read_config_files(names);
  if (!config) return std::unexpected(failure(config.error().message));
  if (*config) return *policy_of(*std::move(config));
  Printed printed{.code = 1, .out = {}, .err = {}};
  for (const auto& mistake : config->error()) printed.err += format_mistake(mistake) + "\n";
  return std::unexpected(std::move(printed));
}

Printed rehearse(const ReplayOptions& options, const std::vector<std::string>& recordings) {
  auto policy = wanted_policy(options.files);
  if (!policy) return std::move(policy.error());
  std::vector<std::string> remarks;
  record::Rehearsal rehearsal(*std::move(policy));
  const auto read = read_lines(
      recordings, [&](std::string_view line) { return rehearsal.feed(line); },
      [&](std::string text) { remarks.push_back(std::move(text)); });
  if (!read) return failure(read.error().message);
  const auto report = rehearsal.finish();
  const bool is_json = options.format == ReplayFormat::Json;
  return {.code = 0, .out = is_json ? rehearsal_json(report, remarks) : rehearsal_text(report, remarks), .err = {}};
}

}  // namespace

Printed replay(const ReplayOptions& options) {
  const auto files = recordings_of(options.paths);
  if (!files) return failure(files.error().message);
  if (!options.files.empty()) return rehearse(options, *files);
  std::vector<std::string> remarks;
  const auto remark = [&](std::string text) { remarks.push_back(std::move(text)); };
  record::Rerun rerun;
  const auto read = read_lines(*files, [&](std::string_view line) { return rerun.feed(line); }, remark);
  if (!read) return failure(read.error().message);
  const auto& report = rerun.report();
  const bool is_json = options.format == ReplayFormat::Json;
  return {.code = report.differences > 0 ? kDiffers : 0,
          .out = is_json ? rerun_json(report, remarks) : rerun_text(report, remarks),
          .err = {}};
}

}  // namespace dhc::cli
