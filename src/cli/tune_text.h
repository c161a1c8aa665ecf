#pragma once
#include <string>

#include "domain/tuning/sweep.h"

namespace dhc::cli {

/// What `tune` prints: tables in Markdown, or one JSON object.
[[nodiscard]] std::string tune_text(const tuning::FaultTrace& trace, const tuning::Sweep& sweep);
[[nodiscard]] std::string tune_json(const tuning::FaultTrace& trace, const tuning::Sweep& sweep);

}  // namespace dhc::cli
