#include "k8s-client/auth/exec_plugin.h"

#include <utility>

#include <fmt/format.h>

#include "k8s-client/auth/file.h"
#include "k8s-client/auth/process.h"

namespace dhc::k8s {

namespace {
WallTime wall_now() { return std::chrono::time_point_cast<WallTime::duration>(std::chrono::system_clock::now()); }
}  // namespace

ExecPlugin::ExecPlugin(KubeExec exec, KubeCluster cluster, ExecLimits limits)
    : exec_(std::move(exec)), cluster_(std::move(cluster)), limits_(limits) {}

Result<ExecCredential> ExecPlugin::run(std::stop_token stop) const {
  std::string ca = cluster_.ca.data;
  if (ca.empty() && !cluster_.ca.file.empty() && exec_.provide_cluster_info) {
    auto read = read_file(cluster_.ca.file);
    if (!read) return std::unexpected(read.error());
    ca = *std::move(read);
  }
  Command command{exec_.command, exec_.args, exec_.env};
  command.env.emplace_back("KUBERNETES_EXEC_INFO", build_exec_info(exec_, cluster_, ca));
  auto output = run_program(command, limits_.timeout, std::move(stop));
  if (!output) {
    Error error = output.error();
    error.message = fmt::format("exec plugin ({}): {}", to_string(exec_.place), error.message);
    if (error.kind == ErrorKind::NotFound) {
      error.kind = ErrorKind::Invalid;
      error.message += exec_.install_hint.empty() ? "; install it or put it into PATH" : "; " + exec_.install_hint;
    }
    return std::unexpected(std::move(error));
  }
  return parse_exec_credential(exec_, *output);
}

Result<ExecCredential> ExecPlugin::credential(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  // Another's run may take a minute: who is told to stop meanwhile leaves.
  if (!done_.wait(lock, stop, [this] { return !runs_; })) {
    return fail(ErrorKind::Cancelled, "stopped while the exec plugin ran for another call");
  }
  const auto now = std::chrono::steady_clock::now();
  const WallTime wall = wall_now();
  const bool due = !current_ || refused_ || (renew_at_ && wall >= *renew_at_);
  const bool expired = current_ && current_->expires_at && wall >= *current_->expires_at;
  if (!due) return *current_;
  if (ran_at_ && now - *ran_at_ < limits_.rest && (!expired || last_failure_ || came_expired_)) {
    // A server that refuses everybody must not make us run the plugin for every request; nor must a clock of ours that
    // is ahead of the plugin's: then the server's decides.
    if (current_ && (!expired || (came_expired_ && !last_failure_))) return *current_;
    if (last_failure_) return std::unexpected(*last_failure_);
  }
  runs_ = true;
  lock.unlock();
  auto fresh = run(std::move(stop));
  lock.lock();
  runs_ = false;
  done_.notify_all();
  if (!fresh && fresh.error().kind == ErrorKind::Cancelled) return fresh;
  ran_at_ = std::chrono::steady_clock::now();
  if (!fresh) {
    last_failure_ = fresh.error();
    if (current_ && !expired && !refused_) return *current_;
    return fresh;
  }
  last_failure_.reset();
  refused_ = false;
  renew_at_ = renew_at(*fresh, wall_now());
  current_ = *fresh;
  came_expired_ = fresh->expires_at && wall_now() >= *fresh->expires_at;
  return fresh;
}

void ExecPlugin::refused() {
  const std::scoped_lock lock(mutex_);
  refused_ = true;
}

}  // namespace dhc::k8s
