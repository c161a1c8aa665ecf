#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/script/cluster.h"

namespace dhc::sim {

/// One thing that the script did to a device.
struct DemoEvent {
  enum class What : std::uint8_t { Broke, Repaired } what = What::Broke;
  std::string node;
  std::string device;
  std::string kind;  ///< The plugin's resource or the DRA driver.
  std::string message;
  std::vector<std::string> holders;  ///< `namespace/name` of the pods that held it then.
};

/// What befalls the demo's cluster: three nodes, a Deployment and a Job on plugin devices, a Deployment on DRA devices;
/// every few seconds a device in use breaks, and is repaired later. Deterministic by seed; told the time.
class DemoScript {
 public:
  explicit DemoScript(std::uint64_t seed) : random_(seed) {}

  /// Makes nodes and workloads; the first device breaks `kFirst` later.
  void set_up(Cluster& cluster, const Now& now);

  /// Does what is due and says what it did.
  [[nodiscard]] std::vector<DemoEvent> advance(Cluster& cluster, const Now& now);

  [[nodiscard]] std::optional<MonoTime> next_due() const;

  static constexpr std::string_view kResource = "example.com/gpu";
  static constexpr std::string_view kDriver = "gpu.example.com";
  static constexpr std::string_view kNamespace = "default";
  static constexpr Millis kFirst{6000};
  static constexpr Millis kEvery{7000};
  static constexpr Millis kRepairAfter{25000};

 private:
  struct Candidate {
    std::string node;
    std::string device;
    bool dra = false;
    std::vector<std::string> holders;
  };
  struct Broken {
    Candidate what;
    MonoTime repair_at;
  };
  [[nodiscard]] std::vector<Candidate> in_use(const Cluster& cluster, bool dra) const;
  [[nodiscard]] std::optional<DemoEvent> break_one(Cluster& cluster, const Now& now);
  [[nodiscard]] DemoEvent repair(Cluster& cluster, const Broken& broken) const;
  [[nodiscard]] std::size_t pick(std::size_t count);

  std::uint64_t random_;
  int turns_ = 0;
  std::optional<MonoTime> next_break_;
  std::vector<Broken> broken_;
};

}  // namespace dhc::sim
