#pragma once
#include <string>
#include <vector>

#include "app/record/rehearsal.h"
#include "app/record/rerun.h"

namespace dhc::cli {

/// What a replay found, for people: what the recording holds, and each plan that decided otherwise.
[[nodiscard]] std::string rerun_text(const record::RerunReport& report, const std::vector<std::string>& remarks);

/// The same as one JSON object on one line.
[[nodiscard]] std::string rerun_json(const record::RerunReport& report, const std::vector<std::string>& remarks);

/// What another configuration would have done, beside what was done: the differences one by one, the sums, and what a
/// rehearsal cannot know.
[[nodiscard]] std::string rehearsal_text(const record::RehearsalReport& report,
                                         const std::vector<std::string>& remarks);

/// The same with what is equal, as one JSON object on one line.
[[nodiscard]] std::string rehearsal_json(const record::RehearsalReport& report,
                                         const std::vector<std::string>& remarks);

}  // namespace dhc::cli
