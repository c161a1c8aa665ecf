#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/policy_run.h"
#include "cli/printed.h"

namespace dhc::cli {

/// What is reported of one case.
struct TestedCase {
  std::string file;
  std::string name;
  CaseResult result;
};

/// `test`: plays the cases of all files and says which failed. Code 1: one failed, or a file has mistakes.
[[nodiscard]] Printed test_policies(const TestOptions& options);

/// The results as a JUnit report: one suite for each file.
[[nodiscard]] std::string junit_of(const std::vector<TestedCase>& cases);

}  // namespace dhc::cli
