#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/access_review.h"
#include "base/now.h"
#include "cli/connection.h"
#include "cli/plugin/explanation.h"
#include "cli/plugin/pause_scope.h"
#include "cli/plugin/views.h"

namespace dhc::cli {

/// Which cluster a command means, and where its controller runs.
struct ClusterFlags {
  std::string kubeconfig = {};  ///< Empty: as kubectl finds it, else in-cluster.
  std::string context = {};     ///< Empty: the current one.
  Impersonation as = {};
  Overrides overrides = {};
  std::string controller_ns = "device-health-system";
};

/// `devices`, `incidents`, `lemons`, `top`.
struct ViewOptions {
  enum class View : std::uint8_t { Devices, Incidents, Lemons, Top };
  View view = View::Devices;
  ClusterFlags cluster = {};
  std::string ns = {};  ///< Only what is held by pods there; empty: all.
  OutputFormat format = OutputFormat::Text;
  bool watch = false;
};

/// `explain pod|device|node|job NAME`.
struct AskOptions {
  ClusterFlags cluster = {};
  Asked asked = {};  ///< Without a namespace: that of the context.
  OutputFormat format = OutputFormat::Text;
  bool watch = false;
};

/// `ack`, `release-brake`, `pause`, `resume`: what operators write.
struct OperatorOptions {
  enum class Deed : std::uint8_t { AckNode, AckDevice, AckWorkload, ReleaseNode, ReleaseCluster, Pause, Resume };
  Deed deed = Deed::AckNode;
  ClusterFlags cluster = {};
  std::string name = {};    ///< Of the node, device or workload.
  std::string kind = {};    ///< Of the workload, in small letters.
  std::string ns = {};      ///< Likewise; empty: the context's.
  std::string reason = {};  ///< Of an acknowledgement or a pause.
  Millis pause_for{0};
  PauseScope scope = {};
  bool all = false;                              ///< `resume`: of everything, and of every part.
  std::optional<ConfigMapName> config_map = {};  ///< None: `device-health-controller` where the controller runs.
  bool dry_run = false;
};

/// `support-bundle`.
struct BundleOptions {
  ClusterFlags cluster = {};
  std::string file = {};  ///< Empty: a name with the time, in this folder.
};

/// `completion SHELL`.
struct CompletionOptions {
  std::string shell = {};
};

/// `__complete WORD...`: what may stand in place of the last word.
struct CompleteOptions {
  std::string program = {};  ///< The name under which it was called: a plugin offers fewer commands.
  std::vector<std::string> words = {};
};

/// `man`: the manual page.
struct ManualOptions {
  bool is_markdown = false;  ///< The page about the command line instead.
};

using PluginCommand =
    std::variant<ViewOptions, AskOptions, OperatorOptions, BundleOptions, CompletionOptions, ManualOptions>;

}  // namespace dhc::cli
