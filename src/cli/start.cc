#include "cli/start.h"

#include <cstdio>
#include <variant>

#include "base/version.h"
#include "cli/command_line.h"
#include "cli/demo.h"
#include "cli/explain.h"
#include "cli/plan.h"
#include "cli/plugin/command_tree.h"
#include "cli/plugin/operate.h"
#include "cli/plugin/show.h"
#include "cli/plugin/support_bundle.h"
#include "cli/plugin/top.h"
#include "cli/policy_test.h"
#include "cli/replay.h"
#include "cli/run.h"
#include "cli/tune.h"
#include "cli/uninstall.h"
#include "cli/validate.h"
#include "cli/version.h"

namespace dhc::cli {

namespace {
int print(const Printed& printed) {
  std::fputs(printed.out.c_str(), stdout);
  std::fputs(printed.err.c_str(), stderr);
  // A full disk or a closed pipe must not look like success.
  return std::fflush(stdout) == 0 ? printed.code : 1;
}

struct Start {
  int operator()(const RunOptions& options) const { return run(options); }
  int operator()(const DemoOptions& options) const { return demo(options); }
  int operator()(const ValidateOptions& options) const { return print(validate(options)); }
  int operator()(const TestOptions& options) const { return print(test_policies(options)); }
  int operator()(const ExplainOptions& options) const { return print(explain(options)); }
  int operator()(const PlanOptions& options) const { return print(plan(options)); }
  int operator()(const ReplayOptions& options) const { return print(replay(options)); }
  int operator()(const TuneOptions& options) const { return print(tune(options)); }
  int operator()(const UninstallOptions& options) const { return uninstall(options); }
  int operator()(const VersionOptions& options) const {
    return print({.code = 0, .out = version_text(options), .err = {}});
  }
  int operator()(const PluginCommand& command) const { return std::visit(*this, command); }
  int operator()(const ViewOptions& options) const {
    return print(options.view == ViewOptions::View::Top ? top(options) : show(options));
  }
  int operator()(const AskOptions& options) const { return print(ask(options)); }
  int operator()(const OperatorOptions& options) const { return print(operate(options)); }
  int operator()(const BundleOptions& options) const { return print(support_bundle(options)); }
  int operator()(const CompletionOptions& options) const {
    return print({.code = 0, .out = completion_script(options.shell), .err = {}});
  }
  int operator()(const CompleteOptions& options) const {
    const auto tree = describe_command_line(options.program);
    return print({.code = 0, .out = completion_text(complete(tree, options.words)), .err = {}});
  }
  int operator()(const ManualOptions& options) const {
    const auto tree = describe_command_line(kProgramName);
    return print(
        {.code = 0, .out = options.is_markdown ? command_page(tree) : manual_page(tree, version()), .err = {}});
  }
  int operator()(const Leave& leave) const { return print({.code = leave.code, .out = leave.out, .err = leave.err}); }
};
}  // namespace

int start(std::span<const char* const> arguments) { return std::visit(Start{}, parse_command_line(arguments)); }

}  // namespace dhc::cli
