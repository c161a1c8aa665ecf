#include "simulator/direct_transport.h"

namespace dhc::sim {

Result<k8s::Response> DirectTransport::send(const k8s::Request& request, std::stop_token stop) {
  if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopped");
  const auto now = clock_();
  auto answer = cluster_.handle(request, now);
  if (answer.watch) answer.body = answer.watch->poll(cluster_.store(), now).bytes;
  return to_response(answer);
}

Result<k8s::Response> DirectTransport::stream(const k8s::Request& request, const k8s::BodySink& sink,
                                              std::stop_token stop) {
  auto response = send(request, std::move(stop));
  if (!response || response->status >= 300) return response;
  const auto body = std::exchange(response->body, {});
  if (!body.empty() && !sink(body)) return fail(ErrorKind::Cancelled, "the sink has enough");
  return response;
}

}  // namespace dhc::sim
