#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/now.h"
#include "k8s-client/auth/kubeconfig.h"

namespace dhc::k8s {

/// What an exec plugin printed.
struct ExecCredential {
  std::string token;
  std::string client_certificate_pem;
  std::string client_key_pem;
  std::optional<WallTime> expires_at;
};

/// The value of KUBERNETES_EXEC_INFO. `ca_pem` is the cluster's CA, read by the caller; the cluster is told only if the
/// kubeconfig says provideClusterInfo. **Source:** client.authentication.k8s.io ExecCredential.
[[nodiscard]] std::string build_exec_info(const KubeExec& exec, const KubeCluster& cluster, std::string_view ca_pem);

/// Reads what a plugin printed. Invalid if it is no ExecCredential of the version that was asked for, has neither token
/// nor certificate, or half a pair; the message names the command and never quotes the output, which holds secrets.
[[nodiscard]] Result<ExecCredential> parse_exec_credential(const KubeExec& exec, std::string_view output);

/// When the credential should be renewed: a minute before it expires, or a tenth of its life if that is less.
[[nodiscard]] std::optional<WallTime> renew_at(const ExecCredential& credential, WallTime got_at);

}  // namespace dhc::k8s
