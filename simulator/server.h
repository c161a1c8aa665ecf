#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/now.h"
#include "simulator/script/cluster.h"

namespace dhc::sim {

/// Serves a Cluster over HTTPS on a free loopback port, in the time that `clock` tells: kubectl and the controller can
/// talk to it. Thread-safe. The destructor ends every connection within a second.
class Server {
 public:
  using Clock = std::function<Now()>;

  /// Starts at once. Throws std::runtime_error if there is no port or no certificate.
  Server(std::uint64_t seed, Clock clock);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Works on the cluster, alone, with its time up to date; watches see what changed.
  void with_cluster(const std::function<void(Cluster&, const Now&)>& work);

  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] const std::string& ca_pem() const;

  /// A kubeconfig for this server, with `token` as the credential.
  [[nodiscard]] std::string kubeconfig(const std::string& token = "simulator") const;

  /// Writes that kubeconfig, readable by its owner alone. Unavailable: the file cannot be written.
  [[nodiscard]] Status write_kubeconfig(const std::string& path, const std::string& token = "simulator") const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dhc::sim
