#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"
#include "domain/policy/policy.h"
#include "simulator/script/cluster.h"

namespace dhc::cli {

/// One device of the simulated cluster.
struct DemoDevice {
  std::string node;
  std::string device;
  std::string kind;  ///< The plugin's resource or the DRA driver.
  friend auto operator<=>(const DemoDevice&, const DemoDevice&) = default;
};

/// One thing that an act does to the cluster.
struct DemoEvent {
  enum class What : std::uint8_t { Broke, Repaired, Told } what = What::Told;
  std::vector<DemoDevice> devices;   ///< Of Broke and Repaired: on one node.
  std::string said;                  ///< The driver's words, may be empty; of Told: who did what.
  std::vector<std::string> holders;  ///< Of Broke: `namespace/name` of the pods that held them then.
};

/// What an act remembers from one step to the next.
struct DemoScene {
  std::uint64_t random = 1;         ///< The seed, then what `pick` makes of it.
  std::vector<DemoDevice> targets;  ///< What the last step that chose has chosen.

  /// One of `count`, by the seed.
  [[nodiscard]] std::size_t pick(std::size_t count);
};

/// One step of an act, told in its cluster's time after the act's beginning.
struct DemoStep {
  Millis at{0};
  std::function<std::vector<DemoEvent>(sim::Cluster&, DemoScene&)> run;
};

/// A part of the demo: a cluster of its own, a configuration as a user would write it, and what befalls them.
struct DemoAct {
  std::string_view name;  ///< As `--act` takes it.
  std::string_view title;
  std::string_view policy;  ///< The lines of a DeviceHealthPolicy's `spec`.
  std::string_view limits;  ///< Likewise of ControllerLimits; empty: the defaults.
  std::function<void(sim::Cluster&)> set_up;
  std::vector<DemoStep> steps;
  Millis length{0};  ///< Of the cluster's time.
  /// A wait of the cluster's is shown to the reader no longer than this, so that an act takes him half a minute.
  Millis longest_wait{2000};
};

/// All acts, in the order in which they are played.
[[nodiscard]] std::span<const DemoAct> demo_acts();

/// The act of that name or number (from 1), or nullptr.
[[nodiscard]] const DemoAct* find_act(std::string_view name);

/// Their names, for messages: `dra, plugin, ...`.
[[nodiscard]] std::string act_names();

/// The act's configuration, read by the program's own parser, for a controller that enforces it.
[[nodiscard]] Result<Policy> policy_of(const DemoAct& act);

}  // namespace dhc::cli
