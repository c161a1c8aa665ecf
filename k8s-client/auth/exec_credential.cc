#include "k8s-client/auth/exec_credential.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/rfc3339.h"
#include "k8s-client/auth/base64.h"
#include "k8s-client/auth/token.h"

namespace dhc::k8s {

std::string build_exec_info(const KubeExec& exec, const KubeCluster& cluster, std::string_view ca_pem) {
  nlohmann::json info = {
      {"apiVersion", exec.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
  if (exec.provide_cluster_info) {
    nlohmann::json told = {{"server", cluster.server}};
    if (!cluster.tls_server_name.empty()) told["tls-server-name"] = cluster.tls_server_name;
    if (cluster.insecure_skip_tls_verify) told["insecure-skip-tls-verify"] = true;
    if (!ca_pem.empty()) told["certificate-authority-data"] = base64_encode(ca_pem);
    if (!cluster.exec_config_json.empty()) told["config"] = nlohmann::json::parse(cluster.exec_config_json);
    info["spec"]["cluster"] = std::move(told);
  }
  return info.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<ExecCredential> parse_exec_credential(const KubeExec& exec, std::string_view output) {
  const auto refused = [&](std::string_view what) {
    return fail(ErrorKind::Invalid, fmt::format("exec plugin '{}' ({}): {}; run it by hand and look at what it prints",
                                                exec.command, to_string(exec.place), what));
  };
  const nlohmann::json document = read_json<nlohmann::json>(output);
  if (!document.is_object()) return refused("printed something that is not a JSON object");
  if (json_string(document, {"kind"}) != "ExecCredential")
    return refused("printed something that is no ExecCredential");
  if (json_string(document, {"apiVersion"}) != exec.api_version) {
    return refused(fmt::format("printed another apiVersion than {}", exec.api_version));
  }
  const auto status = document.find("status");
  if (status == document.end() || !status->is_object()) return refused("printed no status");

  ExecCredential credential;
  credential.client_certificate_pem = json_string(*status, {"clientCertificateData"});
  credential.client_key_pem = json_string(*status, {"clientKeyData"});
  const std::string token = json_string(*status, {"token"});
  if (credential.client_certificate_pem.empty() != credential.client_key_pem.empty()) {
    return refused("printed a client certificate without its key, or the other way round");
  }
  if (token.empty() && credential.client_certificate_pem.empty()) return refused("printed no token and no certificate");
  if (!token.empty()) {
    auto clean = clean_token(token, fmt::format("exec plugin '{}' ({})", exec.command, to_string(exec.place)));
    if (!clean) return std::unexpected(clean.error());
    credential.token = *std::move(clean);
  }
  if (const std::string expiry = json_string(*status, {"expirationTimestamp"}); !expiry.empty()) {
    credential.expires_at = parse_rfc3339(expiry);
    if (!credential.expires_at) return refused("printed an expirationTimestamp that is no RFC 3339 time");
  }
  return credential;
}

std::optional<WallTime> renew_at(const ExecCredential& credential, WallTime got_at) {
  if (!credential.expires_at) return std::nullopt;
  const auto life = std::max(*credential.expires_at - got_at, WallTime::duration::zero());
  return *credential.expires_at - std::min<WallTime::duration>(std::chrono::minutes(1), life / 10);
}

}  // namespace dhc::k8s
