#include "reconcilers/eviction/execute.h"

#include "reconcilers/eviction/exchange.h"

namespace dhc::eviction {

Tried execute(const EvictPod& action, const k8s::Client& client, const std::stop_token& stop) {
  Exchange exchange(action);
  while (const auto request = exchange.next()) exchange.take(client.call(*request, stop));
  return {.status = exchange.outcome(), .reads = exchange.reads()};
}

}  // namespace dhc::eviction
