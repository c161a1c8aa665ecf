#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8s-client/auth/kubeconfig.h"
#include "k8s-client/auth/server_url.h"

namespace dhc::k8s {

namespace {

template <class T>
const T* named(const std::vector<T>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &T::name);
  return found == entries.end() ? nullptr : &*found;
}

template <class T>
std::string names_of(const std::vector<T>& entries) {
  std::vector<std::string> names;
  for (const T& entry : entries) names.push_back(entry.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::unexpected<Error> refuse(const KubeconfigPlace& place, std::string_view message) {
  return fail(ErrorKind::Invalid, fmt::format("kubeconfig {}: {}", to_string(place), message));
}

Status check(const KubeCluster& cluster) {
  const auto refused = [&](std::string_view what) {
    return refuse(cluster.place, fmt::format("cluster '{}': {}", cluster.name, what));
  };
  if (cluster.server.empty()) return refused("no server; write server: https://HOST:PORT");
  if (const auto endpoint = parse_server_url(cluster.server); !endpoint) return refused(endpoint.error().message);
  if (cluster.insecure_skip_tls_verify && !cluster.ca.empty()) {
    return refused("insecure-skip-tls-verify together with a certificate authority; remove one of them");
  }
  if (!cluster.proxy_url.empty()) {
    return refused(
        "proxy-url is not supported by this program; remove it and reach the server directly or through a tunnel "
        "(with tls-server-name)");
  }
  return {};
}

Status check(const KubeExec& exec, const KubeUser& user) {
  const auto refused = [&](std::string_view what) {
    return refuse(exec.place, fmt::format("user '{}': exec: {}", user.name, what));
  };
  constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";
  if (exec.command.empty()) return refused("no command; name the plugin to run");
  if (exec.api_version != kV1 && exec.api_version != "client.authentication.k8s.io/v1beta1") {
    return refused(
        fmt::format("apiVersion '{}' is not supported; update the plugin and write {}", exec.api_version, kV1));
  }
  if (exec.interactive_mode == "Always") {
    return refused("interactiveMode Always needs a person at a terminal; use a token or a plugin that can run alone");
  }
  if (exec.interactive_mode.empty() ? exec.api_version == kV1
                                    : exec.interactive_mode != "Never" && exec.interactive_mode != "IfAvailable") {
    return refused(fmt::format("interactiveMode '{}' is not known; write Never or IfAvailable", exec.interactive_mode));
  }
  return {};
}

Status check(const KubeUser& user) {
  const auto refused = [&](std::string_view what) {
    return refuse(user.place, fmt::format("user '{}': {}", user.name, what));
  };
  if (user.auth_provider) {
    return refused("auth-provider was removed from Kubernetes; use the provider's exec plugin or a token");
  }
  const bool token = !user.token.empty() || !user.token_file.empty();
  const bool basic = !user.username.empty() || !user.password.empty();
  if (token && basic) return refused("both a token and a username; remove one of them");
  if (basic && user.username.contains(':')) return refused("a username may not have a colon");
  if (user.client_certificate.empty() != user.client_key.empty()) {
    return refused("a client certificate needs a client key and the other way round; give both");
  }
  const bool groups = !user.impersonate_groups.empty() || !user.impersonate_extra.empty();
  if (user.impersonate.empty() && (groups || !user.impersonate_uid.empty())) {
    return refused("as-groups, as-uid and as-user-extra need 'as'; say whom to impersonate");
  }
  return user.exec ? check(*user.exec, user) : Status{};
}

/// The context, or an empty one where none is needed.
Result<KubeContext> find_context(const Kubeconfig& config, std::string_view name, const ContextOverrides& overrides) {
  const bool asked = !name.empty();
  const bool is_needed = overrides.cluster.empty() && overrides.server.empty();
  const std::string wanted = asked ? std::string(name) : config.current_context;
  if (wanted.empty()) {
    if (!is_needed) return KubeContext{};
    return fail(ErrorKind::Invalid,
                fmt::format("kubeconfig: no current-context; name one with --context (there are: {})",
                            names_of(config.contexts)));
  }
  if (const KubeContext* context = named(config.contexts, wanted)) return *context;
  const std::string problem =
      fmt::format("no context '{}'; name one with --context (there are: {})", wanted, names_of(config.contexts));
  if (asked) return fail(ErrorKind::Invalid, "kubeconfig: " + problem);
  if (!is_needed) return KubeContext{};
  return refuse(config.current_context_place, problem);
}

/// One of the clusters or users: by the command line, else by the context. Null: neither names one.
template <class T>
Result<const T*> find_entry(std::string_view kind, const std::vector<T>& entries, const std::string& flag,
                            const std::string& by_context, const KubeContext& context) {
  const std::string& name = flag.empty() ? by_context : flag;
  if (const T* entry = named(entries, name)) return entry;
  if (!flag.empty()) {
    return fail(ErrorKind::Invalid, fmt::format("kubeconfig: no {0} '{1}'; name one with --{0} (there are: {2})", kind,
                                                name, names_of(entries)));
  }
  if (context.name.empty() && name.empty()) return nullptr;
  return refuse(context.place, fmt::format("context '{}' names {} '{}', which is in no file; add it or choose another "
                                           "context",
                                           context.name, kind, name));
}

/// **Source:** clientcmd's getCluster: an override to skip the check clears the file's authority.
void override_tls(KubeCluster& cluster, const ContextOverrides& overrides) {
  if (!overrides.tls_server_name.empty()) cluster.tls_server_name = overrides.tls_server_name;
  if (overrides.insecure_skip_tls_verify) {
    cluster.insecure_skip_tls_verify = true;
    cluster.ca = {};
  }
  if (!overrides.ca.empty()) {
    cluster.ca = {.data = {}, .file = overrides.ca};
    cluster.insecure_skip_tls_verify = overrides.insecure_skip_tls_verify;
  }
}

/// **Source:** clientcmd's getAuthInfo; a token of the command line goes before a plugin's and a password.
void override_user(KubeUser& user, const ContextOverrides& overrides) {
  if (!overrides.client_certificate.empty())
    user.client_certificate = {.data = {}, .file = overrides.client_certificate};
  if (!overrides.client_key.empty()) user.client_key = {.data = {}, .file = overrides.client_key};
  if (overrides.token.empty()) return;
  user.token = overrides.token;
  user.token_file.clear();
  user.username.clear();
  user.password.clear();
  user.exec.reset();
  user.auth_provider = false;
}

}  // namespace

Result<ChosenContext> choose_context(const Kubeconfig& config, std::string_view name,
                                     const ContextOverrides& overrides) {
  const auto context = find_context(config, name, overrides);
  if (!context) return std::unexpected(context.error());
  KubeCluster cluster;
  cluster.name = "of --server";
  cluster.place = {.file = "command line", .line = 1};
  const auto named_cluster = find_entry("cluster", config.clusters, overrides.cluster, context->cluster, *context);
  // With a server the context's cluster adds no more than its authority.
  if (!named_cluster && (overrides.server.empty() || !overrides.cluster.empty()))
    return std::unexpected(named_cluster.error());
  if (named_cluster && *named_cluster != nullptr) cluster = **named_cluster;
  if (!overrides.server.empty()) {
    cluster.server = overrides.server;
    cluster.tls_server_name.clear();
  }
  override_tls(cluster, overrides);
  const auto named_user = find_entry("user", config.users, overrides.user, context->user, *context);
  if (!named_user) return std::unexpected(named_user.error());
  KubeUser user;
  user.name = "nobody";
  user.place = {.file = "command line", .line = 1};
  if (*named_user != nullptr) user = **named_user;
  override_user(user, overrides);
  if (auto fits = check(cluster); !fits) return std::unexpected(fits.error());
  if (auto fits = check(user); !fits) return std::unexpected(fits.error());
  const auto endpoint = parse_server_url(cluster.server);
  const bool secret = !user.token.empty() || !user.token_file.empty() || !user.username.empty() || user.exec;
  if (!endpoint->tls && secret && !is_loopback(endpoint->host)) {
    return refuse(cluster.place, fmt::format("cluster '{}': server is http:// and the user's credentials would travel "
                                             "unencrypted; write https://",
                                             cluster.name));
  }
  return ChosenContext{context->name, cluster, user, context->ns.empty() ? "default" : context->ns};
}

}  // namespace dhc::k8s
