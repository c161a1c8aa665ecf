#include "cli/replay.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/record/rerun.h"
#include "cli/record_reading.h"
#include "cli/replay_text.h"

namespace dhc::cli {

Printed replay(const ReplayOptions& options) {
  const auto files = recordings_of(options.paths);
  if (!files) return failure(files.error().message);
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
