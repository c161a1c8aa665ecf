#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "k8s-client/auth/exec_plugin.h"
#include "k8s-client/auth/kubeconfig.h"
#include "k8s-client/auth/proxy_variables.h"
#include "k8s-client/client.h"
#include "k8s-client/endpoint.h"

namespace dhc::k8s {

/// Whom to speak to and as whom.
struct KubeAccess {
  Endpoint endpoint;
  std::shared_ptr<Credentials> credentials;
  std::string ns;           ///< Where we live: the context's namespace, or that of our service account.
  std::string origin;       ///< `context 'NAME'` or `service account of this pod`, for the log.
  bool in_cluster = false;  ///< By a pod's service account: `ns` is that of our pod.
};

/// What the command line says about it; empty: not given.
struct AccessFlags {
  std::string kubeconfig;
  std::string context;
  ContextOverrides overrides = {};
};

/// All that is read from outside to find the cluster; a value, so that tests need no environment of their own.
struct AccessSurroundings {
  std::string kubeconfig;  ///< KUBECONFIG: paths with `:` between them.
  std::string home;
  std::string service_host;   ///< KUBERNETES_SERVICE_HOST.
  std::string service_port;   ///< KUBERNETES_SERVICE_PORT.
  std::string pod_namespace;  ///< POD_NAMESPACE: wins over the file.
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  ProxyVariables proxy;
  ExecLimits exec;

  /// Those of this process.
  [[nodiscard]] static AccessSurroundings of_this_process();
};

/// Access by one context of merged kubeconfig files. Credentials that need a file or plugin are tried at the first use.
[[nodiscard]] Result<KubeAccess> make_kube_access(const ChosenContext& context, const AccessSurroundings& around);

/// Access by the pod's service account.
[[nodiscard]] Result<KubeAccess> in_cluster_access(const AccessSurroundings& around);

/// Finds the cluster as controllers do: `--kubeconfig` (must exist), else KUBECONFIG, else the pod's service account,
/// else
/// ~/.kube/config. Errors name everything that was tried. **Source:** controller-runtime pkg/client/config.
[[nodiscard]] Result<KubeAccess> default_access(const AccessFlags& flags, const AccessSurroundings& around);

}  // namespace dhc::k8s
