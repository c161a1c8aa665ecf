#include "cli/connection.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/version.h"
#include "k8s-client/transport_factory.h"

namespace dhc::cli {

namespace {
/// Adds who is impersonated to what says who we are.
class Impersonating final : public k8s::Credentials {
 public:
  Impersonating(std::shared_ptr<k8s::Credentials> own, Impersonation as) : own_(std::move(own)), as_(std::move(as)) {}

  [[nodiscard]] Result<std::vector<k8s::Header>> headers(std::stop_token stop) override {
    auto all = own_->headers(std::move(stop));
    if (!all) return all;
    // The command line's word, and not that of the kubeconfig.
    std::erase_if(*all, [](const k8s::Header& header) { return header.name.starts_with("Impersonate-"); });
    all->push_back({"Impersonate-User", as_.user});
    if (!as_.uid.empty()) all->push_back({"Impersonate-Uid", as_.uid});
    for (const auto& group : as_.groups) all->push_back({"Impersonate-Group", group});
    return all;
  }
  void unauthorized() override { own_->unauthorized(); }
  [[nodiscard]] Result<k8s::TlsMaterial> tls(std::stop_token stop) override { return own_->tls(std::move(stop)); }
  [[nodiscard]] std::string remedy() const override { return own_->remedy(); }

 private:
  const std::shared_ptr<k8s::Credentials> own_;
  const Impersonation as_;
};
constexpr Millis kAnyTime = std::chrono::hours(24 * 365);

/// The same client, which gives each request that much time. A watch goes on for as long as it likes.
std::shared_ptr<k8s::Client> limited(const k8s::Client& client, Millis time) {
  return std::make_shared<k8s::Client>(client.admitted_by([time](k8s::Request& request) {
    auto& timeouts = request.timeouts;
    const auto most = time == Millis::zero() ? kAnyTime : time;
    timeouts.connect = most;
    if (!timeouts.total) return Status();
    timeouts.idle = most;
    timeouts.total = most;
    return Status();
  }));
}
}  // namespace

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<Connection> connect(k8s::AccessFlags flags, const Impersonation& as, std::string_view program,
                           const Overrides& overrides) {
  if (as.user.empty() && !as.groups.empty()) return fail(ErrorKind::Invalid, "--as-group needs --as");
  if (as.user.empty() && !as.uid.empty()) return fail(ErrorKind::Invalid, "--as-uid needs --as");
  flags.overrides = overrides.context;
  auto access = k8s::default_access(flags, k8s::AccessSurroundings::of_this_process());
  if (!access) return std::unexpected(std::move(access.error()));
  if (!as.user.empty()) access->credentials = std::make_shared<Impersonating>(access->credentials, as);
  auto tls = [credentials = access->credentials](std::stop_token stop) { return credentials->tls(std::move(stop)); };
  auto client = std::make_shared<k8s::Client>(k8s::make_transport(access->endpoint, std::move(tls)),
                                              access->credentials, fmt::format("{}/{}", program, version()));
  if (overrides.request_timeout) client = limited(*client, *overrides.request_timeout);
  const auto file = flags.kubeconfig.empty() ? variable("KUBECONFIG") : flags.kubeconfig;
  auto cluster = file.empty() ? access->origin : fmt::format("{} of {}", access->origin, file);
  return Connection{.access = *std::move(access), .client = std::move(client), .cluster = std::move(cluster)};
}

}  // namespace dhc::cli
