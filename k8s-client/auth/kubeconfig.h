#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace dhc::k8s {

/// A place in a kubeconfig file, for messages.
struct KubeconfigPlace {
  std::string file;
  int line = 0;
};

/// `FILE:LINE`.
[[nodiscard]] std::string to_string(const KubeconfigPlace& place);

/// Bytes given in the file itself or by the path of another file; the data wins. **Source:** clientcmd/api.
struct InlineOrFile {
  std::string data;
  std::string file;  ///< Relative paths are resolved by the folder of the kubeconfig.
  [[nodiscard]] bool empty() const { return data.empty() && file.empty(); }
};

struct KubeCluster {
  std::string name;
  KubeconfigPlace place;
  std::string server;
  InlineOrFile ca;
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;
  std::string proxy_url;
  std::string exec_config_json;  ///< The extension `client.authentication.k8s.io/exec` as JSON; empty: none.
};

/// A command that prints a credential. **Source:** client.authentication.k8s.io.
struct KubeExec {
  std::string api_version;
  std::string command;  ///< A bare name (looked for in PATH) or a path.
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::string install_hint;
  std::string interactive_mode;  ///< Never, IfAvailable, Always; empty: not given.
  bool provide_cluster_info = false;
  KubeconfigPlace place;
};

struct KubeUser {
  std::string name;
  KubeconfigPlace place;
  InlineOrFile client_certificate;
  InlineOrFile client_key;
  std::string token;
  std::string token_file;
  std::string username;
  std::string password;
  std::optional<KubeExec> exec;
  bool auth_provider = false;
  std::string impersonate;  ///< `as`.
  std::string impersonate_uid;
  std::vector<std::string> impersonate_groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> impersonate_extra;
};

struct KubeContext {
  std::string name;
  KubeconfigPlace place;
  std::string cluster;
  std::string user;
  std::string ns;
};

/// One kubeconfig file, or several merged.
struct Kubeconfig {
  std::string current_context;
  KubeconfigPlace current_context_place;
  std::vector<KubeCluster> clusters;
  std::vector<KubeUser> users;
  std::vector<KubeContext> contexts;
};

/// Reads one file's text (YAML or JSON). Keys that we do not know are passed over, as kubectl does; a value of the
/// wrong type, a doubled name or bad base64 is Invalid and names file, line and remedy.
[[nodiscard]] Result<Kubeconfig> parse_kubeconfig(std::string_view file, std::string_view text);

/// Merges in order: for each name the first file wins, and so for current-context. **Source:** clientcmd's loading
/// rules.
[[nodiscard]] Kubeconfig merge_kubeconfigs(std::vector<Kubeconfig> files);

/// What stands in the place of a context's own; empty: not given. **Source:** clientcmd's ConfigOverrides.
struct ContextOverrides {
  std::string cluster;                  ///< Name of a cluster in the files.
  std::string user;                     ///< Name of a user in the files.
  std::string server;                   ///< Address of the cluster; tls-server-name is then not what the file says.
  std::string token = {};               ///< Instead of whatever else would say who we are, but a certificate.
  std::string client_certificate = {};  ///< A file; likewise the next two.
  std::string client_key = {};
  std::string ca = {};
  std::string tls_server_name = {};
  bool insecure_skip_tls_verify = false;  ///< Then the file's authority does not count.
  friend bool operator==(const ContextOverrides&, const ContextOverrides&) = default;
};

/// What one context means.
struct ChosenContext {
  std::string name;  ///< Empty: none, everything is overridden.
  KubeCluster cluster;
  KubeUser user;
  std::string ns;  ///< `default` if the context names none.
};

/// The context of that name, or the current one if `name` is empty, with everything it needs; none is needed where a
/// cluster or server is given. Invalid if something is
/// missing, contradicts itself or is not supported by this program; the message names file, line and remedy.
[[nodiscard]] Result<ChosenContext> choose_context(const Kubeconfig& config, std::string_view name,
                                                   const ContextOverrides& overrides = {});

}  // namespace dhc::k8s
