#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"
#include "k8s-client/auth/access.h"
#include "k8s-client/client.h"

namespace dhc::cli {

/// The cluster that the command line means, and how to speak to it.
struct Connection {
  k8s::KubeAccess access;
  std::shared_ptr<const k8s::Client> client;
  std::string cluster;  ///< Context and file, for people: who reads of a refused certificate has to know them.
};

/// As whom each request is made instead of ourselves. **Source:** Kubernetes' "User impersonation".
struct Impersonation {
  std::string user = {};  ///< Empty: nobody.
  std::string uid = {};   ///< Empty: none.
  std::vector<std::string> groups = {};
  friend bool operator==(const Impersonation&, const Impersonation&) = default;
};

/// What the command line puts in the place of what a kubeconfig and this program say; as kubectl means it.
struct Overrides {
  k8s::ContextOverrides context = {};
  std::optional<Millis> request_timeout = {};  ///< Of one request; 0: any time. None: this program's own, mostly 30 s.
  friend bool operator==(const Overrides&, const Overrides&) = default;
};

/// Finds it by the flags and the environment; nothing is sent yet. Errors name everything that was tried. `program` is
/// what the API server's audit log calls us: what an operator writes is not the controller's doing.
[[nodiscard]] Result<Connection> connect(k8s::AccessFlags flags, const Impersonation& as = {},
                                         std::string_view program = "device-health-controller",
                                         const Overrides& overrides = {});

/// The environment variable of that name; empty if there is none.
[[nodiscard]] std::string variable(const char* name);

}  // namespace dhc::cli
