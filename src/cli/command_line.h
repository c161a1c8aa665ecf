#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/access_review.h"
#include "app/log.h"
#include "base/now.h"
#include "cli/plugin/command_tree.h"
#include "cli/plugin/options.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/watch_requests.h"

namespace dhc::cli {

/// `run`: the controller against a cluster.
struct RunOptions {
  std::string kubeconfig;  ///< Empty: as kubectl finds it, else in-cluster.
  std::string context;     ///< Empty: the current one.
  std::string config_file;
  std::optional<ConfigMapName> config_map;
  Mode mode = Mode::Observe;
  bool events = true;
  bool status = true;
  std::optional<bool> leader_elect;  ///< None: if we know our own namespace.
  k8s::WireFormat wire_format = k8s::WireFormat::Protobuf;
  LogFormat log_format = LogFormat::Text;
  LogLevel log_level = LogLevel::Info;
  std::string metrics_address = ":8080";          ///< `0`: not served.
  std::string health_address = ":8081";           ///< `0`: not served.
  std::string detail_address = "127.0.0.1:8082";  ///< `0`: not served.
  std::string record_folder;                      ///< Empty: nothing is recorded.
  std::int64_t record_most_bytes = std::int64_t{512} << 20U;
  friend bool operator==(const RunOptions&, const RunOptions&) = default;
};

/// `demo`: the controller against a simulated cluster in this process.
struct DemoOptions {
  std::string act;                 ///< By name or number; empty: all.
  std::optional<Millis> duration;  ///< None: until the last act is over.
  bool repeat = false;             ///< After the last act it begins again, with the next seed.
  std::uint64_t seed = 1;
  double speed = 1;
  friend bool operator==(const DemoOptions&, const DemoOptions&) = default;
};

/// `validate`: the configuration's mistakes.
struct ValidateOptions {
  std::vector<std::string> files;  ///< `-` is standard input.
  friend bool operator==(const ValidateOptions&, const ValidateOptions&) = default;
};

/// `test`: configurations against cases in a simulated cluster.
struct TestOptions {
  std::vector<std::string> files;  ///< Of PolicyTest documents.
  std::string junit;               ///< Where a JUnit report is written; empty: nowhere.
  friend bool operator==(const TestOptions&, const TestOptions&) = default;
};

/// `explain`: what reasons of verdicts mean.
struct ExplainOptions {
  std::vector<std::string> reasons;  ///< None: all.
  friend bool operator==(const ExplainOptions&, const ExplainOptions&) = default;
};

/// How `plan` prints.
enum class PlanFormat : std::uint8_t {
  Text,  ///< A table.
  Wide,  ///< The same with each reason's message below its row.
  Json,
  Yaml,
};

/// `plan`: what configurations would do to a cluster; reads only.
struct PlanOptions {
  std::string kubeconfig;  ///< Empty: as kubectl finds it, else in-cluster.
  std::string context;     ///< Empty: the current one.
  Overrides overrides = {};
  Impersonation as = {};
  std::string ns = "device-health-system";  ///< Where the controller runs: its state and configuration are there.
  std::optional<ConfigMapName> config_map;  ///< None: `device-health-controller` in that namespace.
  std::vector<std::string> files;           ///< Of the new configuration; none: only today's is shown.
  Millis horizon = std::chrono::hours(1);
  PlanFormat format = PlanFormat::Text;
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

enum class ReplayFormat : std::uint8_t { Text, Json };

/// `replay`: recordings, given to the same core again.
struct ReplayOptions {
  std::vector<std::string> paths;  ///< Folders and files.
  bool is_audit = false;           ///< They are audit logs of an API server.
  std::vector<std::string> files;  ///< Of another configuration; none: what is decided is compared with the recording.
  ReplayFormat format = ReplayFormat::Text;
  friend bool operator==(const ReplayOptions&, const ReplayOptions&) = default;
};

/// `tune`: rules over the faults of a trace or of recordings.
struct TuneOptions {
  std::vector<std::string> paths;  ///< A published trace, or folders and files of recordings.
  std::vector<std::string> files;  ///< Of the running configuration; none: the shipped defaults.
  std::string policy;              ///< Its policy; empty: the only one.
  std::vector<std::string> sweep;  ///< `KEY=VALUE,VALUE`, as given.
  bool is_json = false;
  friend bool operator==(const TuneOptions&, const TuneOptions&) = default;
};

/// `uninstall`: removes every trace of ours from a cluster.
struct UninstallOptions {
  std::string kubeconfig;                   ///< Empty: as kubectl finds it, else in-cluster.
  std::string context;                      ///< Empty: the current one.
  std::string ns = "device-health-system";  ///< Where the controller ran: its ConfigMap and Lease are there.
  bool dry_run = false;
  friend bool operator==(const UninstallOptions&, const UninstallOptions&) = default;
};

struct VersionOptions {
  bool json = false;
  friend bool operator==(const VersionOptions&, const VersionOptions&) = default;
};

/// Nothing to do: help was asked for, or the command line is wrong.
struct Leave {
  int code = 0;
  std::string out;  ///< For standard output.
  std::string err;  ///< For standard error.
};

using Command =
    std::variant<RunOptions, DemoOptions, ValidateOptions, TestOptions, ExplainOptions, PlanOptions, ReplayOptions,
                 TuneOptions, UninstallOptions, VersionOptions, PluginCommand, CompleteOptions, Leave>;

/// Our own name.
inline constexpr std::string_view kProgramName = "device-health-controller";

/// The name of the file under which kubectl finds us as `kubectl device-health`.
inline constexpr std::string_view kPluginName = "kubectl-device_health";

/// Exit code of a wrong command line.
inline constexpr int kUsage = 2;

/// Reads the arguments, the program's name first. What is wrong is named with a hint at what may be meant.
[[nodiscard]] Command parse_command_line(std::span<const char* const> arguments);

/// Every command with its options, for completion and the manual page. `program` is the name that it was started by:
/// as `kubectl-device_health` it shows what a kubectl plugin is for.
[[nodiscard]] CommandHelp describe_command_line(std::string_view program);

}  // namespace dhc::cli
