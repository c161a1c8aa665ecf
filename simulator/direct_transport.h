#pragma once
#include <functional>

#include "k8s-client/transport.h"
#include "simulator/script/cluster.h"

namespace dhc::sim {

/// A Transport that asks a Cluster in this process, without sockets and without waiting. One thread.
class DirectTransport : public k8s::Transport {
 public:
  DirectTransport(Cluster& cluster, std::function<Now()> clock) : cluster_(cluster), clock_(std::move(clock)) {}

  /// The answer at once; delays and cuts of the script are not felt. A watch answers with what there is now.
  [[nodiscard]] Result<k8s::Response> send(const k8s::Request& request, std::stop_token stop) override;
  [[nodiscard]] Result<k8s::Response> stream(const k8s::Request& request, const k8s::BodySink& sink,
                                             std::stop_token stop) override;

 private:
  Cluster& cluster_;
  std::function<Now()> clock_;
};

}  // namespace dhc::sim
