#include "k8s-client/auth/access.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8s-client/auth/access_credentials.h"
#include "k8s-client/auth/file.h"
#include "k8s-client/auth/server_url.h"

namespace dhc::k8s {

namespace {

constexpr std::size_t kMostKubeconfigBytes = std::size_t{16} << 20;

std::string variable(const char* upper, const char* lower = nullptr) {
  if (const char* value = std::getenv(upper); value != nullptr && *value != '\0') return value;
  const char* other = lower == nullptr ? nullptr : std::getenv(lower);
  return other == nullptr ? "" : other;
}

/// The distinct paths of a list with `:` between them.
std::vector<std::string> paths_of(const std::string& list) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    std::string path = list.substr(at, end - at);
    if (!path.empty() && std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
    at = end + 1;
  }
  return paths;
}

Status refuse_proxy(const Endpoint& endpoint, const AccessSurroundings& around) {
  const auto name = proxy_variable_for(endpoint, around.proxy);
  if (!name) return {};
  return fail(ErrorKind::Invalid,
              fmt::format("{} is set, but this program does not use proxies; add {} to NO_PROXY to reach it directly",
                          *name, endpoint.host));
}

/// Reads and merges; a file that does not exist is passed over unless it `must_exist`. Nothing if none existed.
Result<std::optional<Kubeconfig>> read_kubeconfigs(const std::vector<std::string>& paths, bool must_exist) {
  std::vector<Kubeconfig> files;
  for (const std::string& path : paths) {
    const auto text = read_file(path, kMostKubeconfigBytes);
    if (!text && text.error().kind == ErrorKind::NotFound && !must_exist) continue;
    if (!text) {
      return fail(ErrorKind::Invalid,
                  fmt::format("kubeconfig {}; correct the path or its permissions", text.error().message));
    }
    auto config = parse_kubeconfig(path, *text);
    if (!config) return std::unexpected(config.error());
    files.push_back(*std::move(config));
  }
  if (files.empty()) return std::optional<Kubeconfig>();
  return std::optional<Kubeconfig>(merge_kubeconfigs(std::move(files)));
}

std::string origin_of(const std::string& context, const ContextOverrides& overrides) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view kind, const std::string& name) {
    if (!name.empty()) parts.push_back(fmt::format("{} '{}'", kind, name));
  };
  add("context", context);
  add("cluster", overrides.cluster);
  add("user", overrides.user);
  add("server", overrides.server);
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What asks for a kubeconfig; empty: nothing does.
std::string_view flag_of(const AccessFlags& flags) {
  if (!flags.context.empty()) return "--context";
  if (!flags.overrides.cluster.empty()) return "--cluster";
  if (!flags.overrides.user.empty()) return "--user";
  if (!flags.overrides.server.empty()) return "--server";
  if (!flags.overrides.token.empty()) return "--token";
  if (!flags.overrides.client_certificate.empty()) return "--client-certificate";
  if (!flags.overrides.client_key.empty()) return "--client-key";
  if (!flags.overrides.ca.empty()) return "--certificate-authority";
  if (!flags.overrides.tls_server_name.empty()) return "--tls-server-name";
  return flags.overrides.insecure_skip_tls_verify ? "--insecure-skip-tls-verify" : "";
}

Result<KubeAccess> access_by(const Kubeconfig& config, const AccessFlags& flags, const AccessSurroundings& around) {
  const auto context = choose_context(config, flags.context, flags.overrides);
  if (!context) return std::unexpected(context.error());
  auto access = make_kube_access(*context, around);
  if (access) access->origin = origin_of(context->name, flags.overrides);
  return access;
}

}  // namespace

AccessSurroundings AccessSurroundings::of_this_process() {
  AccessSurroundings around;
  around.kubeconfig = variable("KUBECONFIG");
  around.home = variable("HOME");
  around.service_host = variable("KUBERNETES_SERVICE_HOST");
  around.service_port = variable("KUBERNETES_SERVICE_PORT");
  around.pod_namespace = variable("POD_NAMESPACE");
  around.proxy = {variable("HTTPS_PROXY", "https_proxy"), variable("HTTP_PROXY", "http_proxy"),
                  variable("NO_PROXY", "no_proxy")};
  return around;
}

Result<KubeAccess> make_kube_access(const ChosenContext& context, const AccessSurroundings& around) {
  auto endpoint = parse_server_url(context.cluster.server);
  if (!endpoint) return std::unexpected(endpoint.error());
  if (auto direct = refuse_proxy(*endpoint, around); !direct) return std::unexpected(direct.error());
  return KubeAccess{*std::move(endpoint), std::make_shared<AccessCredentials>(sources_of(context, around.exec)),
                    context.ns, fmt::format("context '{}'", context.name), false};
}

Result<KubeAccess> in_cluster_access(const AccessSurroundings& around) {
  const std::string& folder = around.service_account;
  const bool bare_ipv6 = around.service_host.contains(':') && !around.service_host.starts_with('[');
  auto endpoint = parse_server_url(fmt::format(
      "https://{}:{}", bare_ipv6 ? "[" + around.service_host + "]" : around.service_host, around.service_port));
  if (!endpoint) {
    return fail(
        ErrorKind::Invalid,
        fmt::format("KUBERNETES_SERVICE_HOST='{}' and KUBERNETES_SERVICE_PORT='{}' name no server; run this in a pod",
                    around.service_host, around.service_port));
  }
  if (auto direct = refuse_proxy(*endpoint, around); !direct) return std::unexpected(direct.error());
  CredentialSources sources;
  sources.origin = "service account of this pod";
  sources.ca.file = folder + "/ca.crt";
  sources.token_file = folder + "/token";
  std::string ns = around.pod_namespace;
  if (ns.empty()) ns = read_file(folder + "/namespace").value_or("default");
  while (ns.ends_with('\n') || ns.ends_with(' ')) ns.pop_back();
  return KubeAccess{*std::move(endpoint), std::make_shared<AccessCredentials>(std::move(sources)), std::move(ns),
                    "service account of this pod", true};
}

Result<KubeAccess> default_access(const AccessFlags& flags, const AccessSurroundings& around) {
  std::vector<std::string> tried;
  if (!flags.kubeconfig.empty()) {
    const auto config = read_kubeconfigs({flags.kubeconfig}, true);
    if (!config) return std::unexpected(config.error());
    return access_by(**config, flags, around);
  }
  if (!around.kubeconfig.empty()) {
    const auto config = read_kubeconfigs(paths_of(around.kubeconfig), false);
    if (!config) return std::unexpected(config.error());
    if (*config) return access_by(**config, flags, around);
    tried.push_back(fmt::format("KUBECONFIG={} (no such file)", around.kubeconfig));
  } else if (around.service_host.empty()) {
    tried.emplace_back("the service account of a pod (KUBERNETES_SERVICE_HOST is not set)");
  } else if (const auto flag = flag_of(flags); !flag.empty()) {
    tried.push_back(fmt::format("not the service account of this pod ({} asks for a kubeconfig)", flag));
  } else if (const auto token = read_file(around.service_account + "/token"); !token) {
    tried.push_back(fmt::format("the service account of this pod ({})", token.error().message));
  } else {
    return in_cluster_access(around);
  }
  if (around.kubeconfig.empty() && !around.home.empty()) {
    const std::string path = around.home + "/.kube/config";
    const auto config = read_kubeconfigs({path}, false);
    if (!config) return std::unexpected(config.error());
    if (*config) return access_by(**config, flags, around);
    tried.push_back(path + " (no such file)");
  }
  // As with `kubectl proxy`: no credentials of ours are needed there.
  if (!flags.overrides.server.empty()) return access_by({}, flags, around);
  return fail(ErrorKind::Invalid,
              fmt::format("no cluster is configured; tried {}; give --kubeconfig FILE", fmt::join(tried, ", ")));
}

}  // namespace dhc::k8s
