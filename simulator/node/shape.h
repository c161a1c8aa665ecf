#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/now.h"
#include "simulator/api/field.h"

namespace dhc::sim {

/// What a container does when it is told to stop.
enum class OnSigterm : std::uint8_t {
  Exit,      ///< Ends with a failure at once.
  ExitZero,  ///< Ends with 0 at once: the pod has Succeeded. **Source:** seen on 1.37.1.
  Ignore,    ///< Runs until it is killed at the end of the grace period.
  Hang,      ///< Never ends, like a process stuck in a dead driver.
};

/// What a pod asks for and how it behaves.
struct PodShape {
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::string image = "registry.test/busybox:1";
  std::string resource;       ///< A device-plugin resource, or empty.
  int count = 1;              ///< Devices, of either kind.
  std::string device_class;   ///< A DRA driver's class (named like the driver), or empty.
  std::string shared_claim;   ///< A standalone ResourceClaim's name instead of a template, or empty.
  bool name_request = false;  ///< The container names the request (`gpu`) within the claim as well.
  OnSigterm on_sigterm = OnSigterm::Exit;
  Millis run_for{0};  ///< Then it exits 0; zero: it runs on.
  std::int64_t grace_seconds = 30;
  bool image_missing = false;           ///< Stays Pending with its devices allocated.
  std::vector<std::string> host_paths;  ///< Folders of the node that it mounts, as drivers and plugins do.
  bool device_in_sidecar = false;       ///< A restartable init container holds the device instead.
  std::string restart_policy = "Always";
  std::string pod_group;  ///< A PodGroup's name, or empty.
};

/// Prefix of the annotations that tell the simulated kubelet how a pod behaves.
inline constexpr std::string_view kBehaviour = "sim.device-health.io/";

/// A pod template (metadata and spec) of that shape. The claim's name in the pod is `gpu`; its template is named like
/// the class and must exist in the namespace.
[[nodiscard]] Json pod_template(const PodShape& shape);

/// A ResourceClaimTemplate's or ResourceClaim's spec: `count` devices of a class, request `gpu`.
[[nodiscard]] Json claim_spec(const std::string& device_class, int count);

/// The name of the claim template for that class and count.
[[nodiscard]] std::string claim_template_name(const std::string& device_class, int count);

}  // namespace dhc::sim
