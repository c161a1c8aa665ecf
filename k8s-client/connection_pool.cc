#include "k8s-client/connection_pool.h"

#include <utility>

namespace dhc::k8s {
namespace {

using Clock = std::chrono::steady_clock;

/// Go's server, which kube-apiserver is, keeps idle connections for minutes; load balancers in between may not.
constexpr std::chrono::seconds kKeepFor{30};
constexpr std::size_t kKept = 4;

}  // namespace

std::unique_ptr<TlsConnection> ConnectionPool::take(const TlsMaterial& material) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  std::erase_if(idle_, [&](const Idle& each) {
    return now - each.since > kKeepFor || each.material != material || !each.connection->quiet();
  });
  if (idle_.empty()) return nullptr;
  std::unique_ptr<TlsConnection> connection = std::move(idle_.back().connection);
  idle_.pop_back();
  return connection;
}

void ConnectionPool::keep(std::unique_ptr<TlsConnection> connection, const TlsMaterial& material) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() == kKept) idle_.erase(idle_.begin());
  idle_.push_back({.connection = std::move(connection), .material = material, .since = Clock::now()});
}

}  // namespace dhc::k8s
