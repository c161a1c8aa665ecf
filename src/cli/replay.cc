#include "cli/replay.h"

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/policy_desk.h"
#include "app/record/audit_reader.h"
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

void note_audit(const record::AuditCounts& counts, std::vector<std::string>& remarks) {
  remarks.push_back(
      fmt::format("{} of {} events of the audit log were used; nothing is known of an object before its "
                  "first one, and the replay knows no decision of then",
                  counts.used, counts.events));
  if (counts.bare > 0) {
    remarks.push_back(
        fmt::format("{} writes were logged without their object: log pods, nodes, claims and slices at the "
                    "level RequestResponse",
                    counts.bare));
  }
  if (counts.unreadable > 0) remarks.push_back(fmt::format("{} objects could not be read", counts.unreadable));
  if (counts.collections > 0) {
    remarks.push_back(
        fmt::format("{} deletions of collections do not say what they have deleted: pods of theirs may be "
                    "taken for there",
                    counts.collections));
  }
  if (counts.dry_runs > 0) remarks.push_back(fmt::format("{} dry runs have changed nothing", counts.dry_runs));
  if (counts.old > 0) {
    remarks.push_back(
        fmt::format("{} objects were known as new or newer already, as after an update that changes nothing, where a "
                    "later write was logged before, or after a restore from a backup: left out",
                    counts.old));
  }
  if (counts.late > 0) {
    remarks.push_back(
        fmt::format("{} events are more than a minute older than one before them, as after a server's clock was set "
                    "back: played at the later time",
                    counts.late));
  }
}

Printed rehearse(const ReplayOptions& options, const std::vector<std::string>& recordings) {
  auto policy = wanted_policy(options.files);
  if (!policy) return std::move(policy.error());
  std::vector<std::string> remarks;
  record::Rehearsal rehearsal(*std::move(policy));
  const auto feed = [&](std::string_view line) { return rehearsal.feed(line); };
  record::AuditReader audit(feed);
  const auto feed_audit = [&](std::string_view line) { return audit.feed(line); };
  const auto remark = [&](std::string text) { remarks.push_back(std::move(text)); };
  const auto time_of = [&](std::string_view line) { return audit.time_of(line); };
  const auto read = options.is_audit ? read_lines_by_time(recordings, time_of, feed_audit, remark)
                                     : read_lines(recordings, feed, remark);
  if (!read) return failure(read.error().message);
  if (options.is_audit) note_audit(audit.counts(), remarks);
  if (options.is_audit && audit.counts().used == 0) {
    return failure(remarks.back() +
                   ". Nothing can be said: the audit policy must log the kubelets' status writes at RequestResponse");
  }
  const auto report = rehearsal.finish();
  const bool is_json = options.format == ReplayFormat::Json;
  return {.code = 0, .out = is_json ? rehearsal_json(report, remarks) : rehearsal_text(report, remarks), .err = {}};
}

}  // namespace

Printed replay(const ReplayOptions& options) {
  if (options.is_audit && options.files.empty())
    return {.code = 2,
            .out = {},
            .err =
                "error: --audit needs a configuration: give -f FILE, because an audit log holds no decisions to "
                "compare with\n"};
  const auto files = options.is_audit ? Result<std::vector<std::string>>(options.paths) : recordings_of(options.paths);
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
