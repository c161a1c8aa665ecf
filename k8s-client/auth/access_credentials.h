#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "k8s-client/auth/exec_plugin.h"
#include "k8s-client/auth/kubeconfig.h"
#include "k8s-client/client.h"

namespace dhc::k8s {

/// Where each part of the credentials comes from; files are named by path and read at each use.
struct CredentialSources {
  std::string origin;     ///< `user 'NAME' (FILE:LINE)` or `service account`, for messages.
  std::string ca_origin;  ///< `cluster 'NAME' (FILE:LINE)`, for those about `ca`; empty: as `origin`.
  InlineOrFile ca;
  InlineOrFile client_certificate;
  InlineOrFile client_key;
  std::string server_name;
  bool insecure_skip_verify = false;
  std::string token;
  std::string token_file;  ///< Wins over `token`, which serves until the file could be read once.
  std::string username;    ///< Basic authentication.
  std::string password;
  std::vector<Header> impersonation;
  std::unique_ptr<ExecPlugin> exec;
};

/// The sources of one context of a kubeconfig. An explicit token, name or certificate switches the exec plugin off.
/// **Source:** client-go plugin/pkg/client/auth/exec.
[[nodiscard]] CredentialSources sources_of(const ChosenContext& context, const ExecLimits& limits);

/// Credentials made of such sources. A token file is read for every request, so that rotation needs no clock and no
/// notice; when it cannot be read, the last good token is sent.
class AccessCredentials final : public Credentials {
 public:
  explicit AccessCredentials(CredentialSources sources);

  [[nodiscard]] Result<std::vector<Header>> headers(std::stop_token stop) override;
  void unauthorized() override;
  [[nodiscard]] Result<TlsMaterial> tls(std::stop_token stop) override;
  [[nodiscard]] std::string remedy() const override;

 private:
  [[nodiscard]] Result<std::string> authorization(std::stop_token stop);
  [[nodiscard]] Result<std::string> token_of_file();

  const CredentialSources sources_;
  mutable std::mutex mutex_;
  std::string last_good_token_;
  std::string token_problem_;  ///< Why the last reading of the token file failed; empty if it did not.
};

}  // namespace dhc::k8s
