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

std::string names_of(const std::vector<KubeContext>& contexts) {
  std::vector<std::string> names;
  for (const KubeContext& context : contexts) names.push_back(context.name);
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

}  // namespace

Result<ChosenContext> choose_context(const Kubeconfig& config, std::string_view name) {
  const bool asked = !name.empty();
  const std::string wanted = asked ? std::string(name) : config.current_context;
  if (wanted.empty()) {
    return fail(ErrorKind::Invalid,
                fmt::format("kubeconfig: no current-context; name one with --context (there are: {})",
                            names_of(config.contexts)));
  }
  const KubeContext* context = named(config.contexts, wanted);
  if (context == nullptr) {
    const std::string problem =
        fmt::format("no context '{}'; name one with --context (there are: {})", wanted, names_of(config.contexts));
    if (!asked) return refuse(config.current_context_place, problem);
    return fail(ErrorKind::Invalid, "kubeconfig: " + problem);
  }
  const KubeCluster* cluster = named(config.clusters, context->cluster);
  if (cluster == nullptr) {
    return refuse(context->place,
                  fmt::format("context '{}' names cluster '{}', which is in no file; add it or choose another context",
                              wanted, context->cluster));
  }
  const KubeUser* user = named(config.users, context->user);
  if (user == nullptr) {
    return refuse(context->place,
                  fmt::format("context '{}' names user '{}', which is in no file; add it or choose another context",
                              wanted, context->user));
  }
  if (auto fits = check(*cluster); !fits) return std::unexpected(fits.error());
  if (auto fits = check(*user); !fits) return std::unexpected(fits.error());
  const auto endpoint = parse_server_url(cluster->server);
  const bool secret = !user->token.empty() || !user->token_file.empty() || !user->username.empty() || user->exec;
  if (!endpoint->tls && secret && !is_loopback(endpoint->host)) {
    return refuse(cluster->place, fmt::format("cluster '{}': server is http:// and the user's credentials would travel "
                                              "unencrypted; write https://",
                                              cluster->name));
  }
  return ChosenContext{wanted, *cluster, *user, context->ns.empty() ? "default" : context->ns};
}

}  // namespace dhc::k8s
