#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "simulator/script/cluster.h"

namespace dhc::test {

/// A simulated cluster and a clock that only tests turn.
class Lab {
 public:
  explicit Lab(std::uint64_t seed = 1);

  /// Lets virtual time pass, stopping at each moment at which the cluster has something to do.
  void run_for(Millis span);

  /// Asks the API server; a JSON body is decoded into `body`.
  sim::Answer ask(k8s::Method method, const std::string& target, const std::string& body = {},
                  const std::string& content_type = {}, const std::string& accept = {});
  [[nodiscard]] sim::Json body_of(const sim::Answer& answer) const;

  /// An eviction with a UID precondition; an empty UID sends none.
  sim::Answer evict(const std::string& pod, const std::string& uid);
  sim::Answer merge(const std::string& target, const sim::Json& patch);
  /// A server-side apply; apiVersion and kind are filled in from the target.
  sim::Answer apply(const std::string& target, sim::Json wanted, const std::string& manager = "tester",
                    bool force = false);
  /// A JSON patch, as text.
  sim::Answer patch(const std::string& target, const std::string& operations);

  /// An object of the namespace `default` (or the cluster); null JSON if absent.
  [[nodiscard]] sim::Json pod(const std::string& name) const;
  [[nodiscard]] sim::Json object(sim::Res res, const std::string& name) const;
  [[nodiscard]] sim::Json cluster_object(sim::Res res, const std::string& name) const;
  [[nodiscard]] std::string uid(const std::string& pod_name) const;
  /// The pods of `default` whose name starts so and that are not being deleted.
  [[nodiscard]] std::vector<std::string> live(std::string_view prefix) const;

  /// The health that the pod's first container shows for its first device; empty if it shows none.
  [[nodiscard]] std::string health(const std::string& pod_name) const;
  [[nodiscard]] std::string health_message(const std::string& pod_name) const;
  /// The DRA device of the pod's claim `gpu`; empty if it has none.
  [[nodiscard]] std::string dra_device(const std::string& pod_name) const;
  /// The plugin device ID that the pod shows first.
  [[nodiscard]] std::string plugin_device(const std::string& pod_name) const;
  [[nodiscard]] std::int64_t allocatable(const std::string& node, const std::string& resource) const;
  [[nodiscard]] std::int64_t capacity(const std::string& node, const std::string& resource) const;

  Now now;
  sim::Cluster cluster;
};

}  // namespace dhc::test
