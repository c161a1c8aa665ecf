#pragma once
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/now.h"

namespace dhc::k8s {

/// A program to run: no shell, nothing of ours is inherited but the environment and stderr.
struct Command {
  std::string program;  ///< A bare name is looked for in PATH.
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  ///< Added to our own, or instead of ours.
};

/// Runs it to its end and gives what it printed (at most 1 MiB). stdin is empty, stderr is ours. After `timeout`, or
/// when stopped, it is killed with all its children. NotFound: no such program. Invalid: it failed or printed too much.
/// TimedOut, Cancelled. Messages name the program, never the output. Blocks.
[[nodiscard]] Result<std::string> run_program(const Command& command, Millis timeout, std::stop_token stop);

}  // namespace dhc::k8s
