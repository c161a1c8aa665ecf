#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "k8s-client/auth/exec_credential.h"
#include "k8s-client/auth/kubeconfig.h"
#include "k8s-client/auth/server_url.h"
#include "k8s-client/auth/token.h"

// Any bytes as a kubeconfig, as what an exec plugin prints, as a token and as a server's URL: a value within its
// bounds, or an error that says something.

namespace {

using namespace dhc;
using namespace dhc::k8s;

void must(bool holds) {
  if (!holds) std::abort();
}

void check_kubeconfig(std::string_view text) {
  const auto config = parse_kubeconfig("/f", text);
  if (!config) {
    must(config.error().message.starts_with("kubeconfig /f:"));
    return;
  }
  const auto chosen = choose_context(merge_kubeconfigs({*config, *config}), "");
  if (!chosen) {
    must(chosen.error().message.starts_with("kubeconfig"));
    return;
  }
  must(parse_server_url(chosen->cluster.server).has_value());
  must(!chosen->ns.empty());
  if (chosen->user.exec) must(!build_exec_info(*chosen->user.exec, chosen->cluster, "").empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_kubeconfig(text);
  KubeExec exec;
  exec.api_version = "client.authentication.k8s.io/v1";
  const auto credential = parse_exec_credential(exec, text);
  if (credential) must(!credential->token.empty() || !credential->client_key_pem.empty());
  const auto token = clean_token(text, "t");
  if (token) must(!token->empty() && token->find_first_of(" \r\n\t") == std::string_view::npos);
  const auto endpoint = parse_server_url(text);
  if (endpoint) must(!endpoint->host.empty() && endpoint->port != 0 && !endpoint->path_prefix.ends_with('/'));
  return 0;
}
