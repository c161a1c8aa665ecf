#include "k8s-client/auth/access_credentials.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "k8s-client/auth/base64.h"
#include "k8s-client/auth/file.h"
#include "k8s-client/auth/token.h"

namespace dhc::k8s {

namespace {

/// PEM bytes that hold `what`; the message names the file or the key of the kubeconfig.
Result<std::string> pem(const InlineOrFile& source, std::string_view key, std::string_view what,
                        const std::string& origin) {
  if (source.empty()) return std::string();
  const std::string where = source.data.empty() ? source.file : fmt::format("{}-data of {}", key, origin);
  auto bytes = source.data.empty() ? read_file(source.file) : Result<std::string>(source.data);
  if (!bytes) {
    return fail(ErrorKind::Invalid,
                fmt::format("{} of {}: {}; correct the path or its permissions", key, origin, bytes.error().message));
  }
  if (!bytes->contains("-----BEGIN ") || !bytes->contains(what)) {
    return fail(ErrorKind::Invalid, fmt::format("{}: no PEM block of a {}; give a PEM file", where, what));
  }
  return bytes;
}

void add_header(std::vector<Header>& headers, std::string name, const std::string& value) {
  if (!value.empty()) headers.push_back({std::move(name), value});
}

/// Impersonate-Extra-KEY: what may not stand in a header name is percent-encoded. **Source:** client-go
/// transport/round_trippers.go headerKeyEscape.
std::string extra_header(const std::string& key) {
  constexpr std::string_view kTokenMarks = "!#$&'*+-.^_`|~";
  std::string name = "Impersonate-Extra-";
  for (const char c : key) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kTokenMarks.contains(c);
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

/// Invalid would mean that the server refuses the request; what helps here is to read the material again.
std::unexpected<Error> unreadable(Error error) {
  if (error.kind == ErrorKind::Invalid) error.kind = ErrorKind::Unauthorized;
  return std::unexpected(std::move(error));
}

}  // namespace

CredentialSources sources_of(const ChosenContext& context, const ExecLimits& limits) {
  const KubeUser& user = context.user;
  CredentialSources sources;
  sources.origin = fmt::format("user '{}' ({})", user.name, to_string(user.place));
  sources.ca = context.cluster.ca;
  sources.ca_origin = fmt::format("cluster '{}' ({})", context.cluster.name, to_string(context.cluster.place));
  sources.server_name = context.cluster.tls_server_name;
  sources.insecure_skip_verify = context.cluster.insecure_skip_tls_verify;
  sources.client_certificate = user.client_certificate;
  sources.client_key = user.client_key;
  sources.token = user.token;
  sources.token_file = user.token_file;
  sources.username = user.username;
  sources.password = user.password;
  add_header(sources.impersonation, "Impersonate-User", user.impersonate);
  add_header(sources.impersonation, "Impersonate-Uid", user.impersonate_uid);
  for (const std::string& group : user.impersonate_groups)
    add_header(sources.impersonation, "Impersonate-Group", group);
  for (const auto& [key, values] : user.impersonate_extra) {
    for (const std::string& value : values) add_header(sources.impersonation, extra_header(key), value);
  }
  const bool is_explicit =
      !user.token.empty() || !user.token_file.empty() || !user.username.empty() || !user.client_certificate.empty();
  if (user.exec && !is_explicit) sources.exec = std::make_unique<ExecPlugin>(*user.exec, context.cluster, limits);
  return sources;
}

AccessCredentials::AccessCredentials(CredentialSources sources) : sources_(std::move(sources)) {}

Result<std::string> AccessCredentials::token_of_file() {
  auto text = read_file(sources_.token_file);
  auto token = text ? clean_token(*text, sources_.token_file) : text;
  const std::scoped_lock lock(mutex_);
  if (token) {
    last_good_token_ = *token;
    token_problem_.clear();
    return token;
  }
  token_problem_ = token.error().message;
  // The kubelet swaps the file by a symbolic link; whatever else went wrong with it, the old token may still be good.
  if (!last_good_token_.empty()) return last_good_token_;
  if (!sources_.token.empty()) return clean_token(sources_.token, "token of " + sources_.origin);
  return fail(ErrorKind::Invalid, fmt::format("token file of {}: {}; write a token there or correct the path",
                                              sources_.origin, token_problem_));
}

Result<std::string> AccessCredentials::authorization(std::stop_token stop) {
  const auto bearer = [](Result<std::string> token) {
    if (token) token->insert(0, "Bearer ");
    return token;
  };
  if (!sources_.token_file.empty()) return bearer(token_of_file());
  if (!sources_.token.empty()) return bearer(clean_token(sources_.token, "token of " + sources_.origin));
  if (!sources_.username.empty()) return "Basic " + base64_encode(sources_.username + ":" + sources_.password);
  if (!sources_.exec) return std::string();
  auto credential = sources_.exec->credential(std::move(stop));
  if (!credential) return std::unexpected(credential.error());
  if (credential->token.empty()) return std::string();
  return "Bearer " + credential->token;
}

Result<std::vector<Header>> AccessCredentials::headers(std::stop_token stop) {
  auto value = authorization(std::move(stop));
  if (!value) return std::unexpected(value.error());
  std::vector<Header> headers = sources_.impersonation;
  add_header(headers, "Authorization", *value);
  return headers;
}

void AccessCredentials::unauthorized() {
  if (sources_.exec) sources_.exec->refused();
}

Result<TlsMaterial> AccessCredentials::tls(std::stop_token stop) {
  TlsMaterial material;
  material.server_name = sources_.server_name;
  material.insecure_skip_verify = sources_.insecure_skip_verify;
  const std::string& origin = sources_.origin;
  const auto& ca_origin = sources_.ca_origin.empty() ? origin : sources_.ca_origin;
  auto ca = pem(sources_.ca, "certificate-authority", "CERTIFICATE", ca_origin);
  if (!ca) return unreadable(std::move(ca.error()));
  material.ca_pem = *std::move(ca);
  if (sources_.exec) {
    auto credential = sources_.exec->credential(std::move(stop));
    if (!credential) return unreadable(std::move(credential.error()));
    material.client_cert_pem = std::move(credential->client_certificate_pem);
    material.client_key_pem = std::move(credential->client_key_pem);
    return material;
  }
  auto certificate = pem(sources_.client_certificate, "client-certificate", "CERTIFICATE", origin);
  if (!certificate) return unreadable(std::move(certificate.error()));
  auto key = pem(sources_.client_key, "client-key", "PRIVATE KEY", origin);
  if (!key) return unreadable(std::move(key.error()));
  material.client_cert_pem = *std::move(certificate);
  material.client_key_pem = *std::move(key);
  return material;
}

std::string AccessCredentials::remedy() const {
  const std::string& origin = sources_.origin;
  if (!sources_.token_file.empty()) {
    const std::scoped_lock lock(mutex_);
    const std::string problem =
        token_problem_.empty() ? "" : fmt::format(" (which could not be read: {})", token_problem_);
    return fmt::format("the token in {}{} of {} is expired or not for this server; put a new one there",
                       sources_.token_file, problem, origin);
  }
  if (!sources_.token.empty())
    return fmt::format("the token of {} is expired or not for this server; get a new one", origin);
  if (!sources_.username.empty()) return fmt::format("the name or password of {} is not accepted; correct it", origin);
  if (sources_.exec)
    return fmt::format("the exec plugin of {} gave a credential that is not accepted; log in again", origin);
  if (!sources_.client_certificate.empty()) {
    return fmt::format("the client certificate of {} is expired or not of a CA this server trusts; get a new one",
                       origin);
  }
  return fmt::format("{} has no credentials; add a token, a client certificate or an exec plugin", origin);
}

}  // namespace dhc::k8s
