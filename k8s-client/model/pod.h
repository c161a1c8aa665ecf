#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_text.h"
#include "base/slim_vector.h"
#include "k8s-client/model/meta.h"
#include "k8s-client/model/scheduling.h"
#include "k8s-client/model/shared.h"
#include "k8s-client/model/shared_list.h"

namespace dhc::k8s {

/// Health as the kubelet reports it; a word we do not know, or none, is Unknown. **Source:** KEP-4680, core/v1
/// ResourceHealth.
enum class Health : std::uint8_t { Healthy, Unknown, Unhealthy };

/// The kubelet's word.
[[nodiscard]] std::string_view to_string(Health health);

/// The longest word for a health that is kept, in bytes. **Source:** the words of core/v1 enums are CamelCase and
/// short.
inline constexpr std::size_t kLongestHealthWord = 63;

enum class PodPhase : std::uint8_t { Pending, Running, Succeeded, Failed, Unknown };

/// One device that a container holds, as the kubelet names it.
struct ReportedDevice {
  SharedText resource_id;  ///< Plugin device ID, or for DRA a CDI id or `driver/pool/device`. **Source:** kubelet
                           ///< buildResourceHealth.
  Health health = Health::Unknown;
  SharedText message;  ///< DRA only, at most 1,024 characters, hostile text.
  /// The kubelet's word where it is none of the three, `health` is Unknown then; printable, cut to
  /// `kLongestHealthWord`. **Source:** KEP-4680 announces PermanentlyUnhealthy.
  SharedText other_word = {};
  SlimVector<SharedText> containers = {};  ///< That hold it, by name, sorted.
  std::int64_t restarts = 0;               ///< `restartCount` of these containers, added up.
  friend bool operator==(const ReportedDevice&, const ReportedDevice&) = default;
};

/// One entry of `allocatedResourcesStatus`, sorted by resource ID because the kubelet's order is random.
struct AllocatedResource {
  SharedText name;  ///< A resource (`nvidia.com/gpu`), `claim:<pod claim>` or `claim:<pod claim>/<request>`.
  SlimVector<ReportedDevice> devices;
  friend bool operator==(const AllocatedResource&, const AllocatedResource&) = default;
};

/// A container that ended with another code than 0.
struct ContainerExit {
  SharedText container;
  std::int64_t code = 0;
  friend bool operator==(const ContainerExit&, const ContainerExit&) = default;
};

/// Longer names of images are not kept. **Source:** github.com/distribution/reference: 255 characters for the name, 128
/// for the tag; with the digest fewer than these.
inline constexpr std::size_t kLongestImage = 512;

/// What a container runs, as its pod's spec names it.
struct ContainerImage {
  std::string container;
  std::string image;
  friend auto operator<=>(const ContainerImage&, const ContainerImage&) = default;
};

/// A claim that the pod uses.
struct PodClaim {
  SharedText name;        ///< `spec.resourceClaims[].name`.
  SharedText claim_name;  ///< The ResourceClaim's name in the pod's namespace; empty while it is not created.
  friend bool operator==(const PodClaim&, const PodClaim&) = default;
};

/// The condition that the Eviction API and others write before a pod is deleted. **Source:** KEP-3329.
inline constexpr std::string_view kDisruptionTargetCondition = "DisruptionTarget";
inline constexpr std::string_view kReadyCondition = "Ready";
/// Of which revision of its DaemonSet or StatefulSet a pod is. **Source:** apps/v1 ControllerRevisionHashLabelKey.
inline constexpr std::string_view kRevisionLabel = "controller-revision-hash";
/// How often the template of its DaemonSet had been made or changed. **Source:** the DaemonSet controller of 1.37.1,
/// CreatePodTemplate: counted from 1.
inline constexpr std::string_view kGenerationLabel = "pod-template-generation";

/// The folder of AMD's metrics exporter, which tells the device plugin the health of each card.
inline constexpr std::string_view kAmdExporterFolder = "amd-metrics-exporter";

/// The part of Pod that we read.
struct Pod {
  Meta meta;
  SharedText node_name;
  PodPhase phase = PodPhase::Unknown;
  SharedText status_reason;                          ///< `status.reason`, such as UnexpectedAdmissionError.
  SharedText status_message;                         ///< `status.message` of a rejected pod, at most 1 KiB.
  std::optional<std::int64_t> grace_period_seconds;  ///< `spec.terminationGracePeriodSeconds`.
  SlimVector<PodClaim> claims;
  SlimVector<ResourceAmount>
      requests;  ///< Extended resources over all containers (init containers: the larger counts).
  SlimVector<AllocatedResource> allocated;  ///< Of all its containers merged, sorted by name.
  bool kubelet_plugin =
      false;  ///< Mounts /var/lib/kubelet/device-plugins, plugins or plugins_registry from the host: a driver.
  /// Which of them, each once, sorted: `device-plugins`, `plugins`, `plugins_registry`, or one driver's `plugins/NAME`;
  /// and `kAmdExporterFolder` of whoever mounts that, which is no driver for it.
  SlimVector<SharedText> plugin_folders;
  /// Of a driver: when one of its containers last began; of one that has ended, its end. Of a Job's pod that has
  /// failed: when the last of its containers ended.
  SharedOptional<WallTime> last_start;
  SlimVector<ContainerExit> exits;  ///< Of containers and init containers, as they stand now.
  /// Those that its reader was told to keep and `DisruptionTarget`; of a Job's pod the type and status of all others
  /// too, because a podFailurePolicy may name any; of a marked pod those of `Ready`.
  SharedList<Condition> conditions;
  bool has_kept_condition = false;  ///< One that its reader was told to keep.
  /// A volume of it shows an annotation that its reader was told to keep: its program wants to know.
  bool shows_kept_annotation = false;
  SharedText pod_group;    ///< `spec.schedulingGroup.podGroupName`. **Source:** core/v1 PodSchedulingGroup, 1.36.
  bool is_marked = false;  ///< It is in a PodGroup, or carries a mark that its reader was told to look for.
  Shared<SchedulingTerms> scheduling;
  /// Of the containers that ask for devices, sorted; none: there is no such container.
  SharedOptional<std::vector<ContainerImage>> images;
  friend bool operator==(const Pod&, const Pod&) = default;
};

/// True if the pod asks for a device, or has been given one.
[[nodiscard]] bool asks_for_devices(const Pod& pod);

/// True if the pod can hold a device, is marked, carries a condition that is kept, or shows its program an annotation
/// that is; of all other pods only the identity is kept, and of drivers that and when they began, so that a big cluster
/// fits in little memory.
[[nodiscard]] bool is_kept_whole(const Pod& pod);

}  // namespace dhc::k8s
