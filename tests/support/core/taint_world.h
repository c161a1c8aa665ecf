#pragma once
#include <string>
#include <vector>

#include "tests/support/core/scenario.h"

namespace dhc::test {

/// Two nodes of four DRA devices and four plugin devices each, and a policy that taints and evicts; the controller
/// keeps its memory in a ConfigMap of its own namespace. What runs on them each test says itself.
class TaintWorld : public Scenario {
 public:
  static constexpr auto kDriver = "gpu.example.com";
  static constexpr auto kResource = "example.com/gpu";
  static constexpr auto kOwnNamespace = "device-health-system";

  explicit TaintWorld(std::uint64_t seed = 1);

  [[nodiscard]] static sim::PodShape dra_pod();
  [[nodiscard]] static sim::PodShape plugin_pod();

  /// A StatefulSet `s` of one pod on a DRA device; the device of `s-0`, as `driver/pool/device`.
  std::string start_one();
  /// The same with the device turned Unhealthy at once and the pod not evicted, so that it goes on reporting.
  std::string start_held();
  /// The same, a minute after its rule was there.
  std::string start_tainted();

  [[nodiscard]] std::string node_of(const std::string& pod) const;
  /// `driver/pool/device` of the pod's claim.
  [[nodiscard]] std::string device_of(const std::string& pod) const;
  void set_health(const std::string& device, std::string_view health, const std::string& message = {});

  /// Our rule for the device; null if there is none.
  [[nodiscard]] sim::Json rule_for(const std::string& device) const;
  /// Its effect; empty if there is none.
  [[nodiscard]] std::string effect_of(const std::string& device) const;
  [[nodiscard]] std::size_t rule_count() const;
  /// True if the node has our taint.
  [[nodiscard]] bool is_tainted(const std::string& node) const;
  /// The taints of the node, as `key:effect`, in order.
  [[nodiscard]] std::vector<std::string> taints_of(const std::string& node) const;

  /// Accepted writes to rules and nodes since the start, as words in order: `PATCH rule`, `DELETE rule`, `PATCH node`,
  /// `evict`.
  [[nodiscard]] std::vector<std::string> steps() const;
  /// How many requests that write were sent, accepted or not, Events apart.
  [[nodiscard]] std::size_t write_count() const;
  /// Whether the controller says this of the device.
  [[nodiscard]] bool says(const std::string& device, const std::string& reason) const;
  /// Whether the controller says this of the pod.
  [[nodiscard]] bool says_of_pod(const std::string& pod, const std::string& reason) const;
  /// Lets time pass until the device's rule is there, at most ten minutes.
  void run_until_tainted(const std::string& device);
  /// Lets time pass until it is gone, at most `limit`; how long it took.
  Millis run_until_untainted(const std::string& device, Millis limit);
};

}  // namespace dhc::test
