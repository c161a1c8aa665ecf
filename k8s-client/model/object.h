#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "k8s-client/model/disruption_budget.h"
#include "k8s-client/model/job.h"
#include "k8s-client/model/lease.h"
#include "k8s-client/model/meta.h"
#include "k8s-client/model/node.h"
#include "k8s-client/model/pod.h"
#include "k8s-client/model/pod_group.h"
#include "k8s-client/model/resource_claim.h"
#include "k8s-client/model/resource_slice.h"

namespace dhc::k8s {

/// The kinds that we watch.
enum class Kind : std::uint8_t {
  Pod,
  ResourceClaim,
  ResourceSlice,
  Node,
  Namespace,
  DeviceTaintRule,
  Job,
  ReplicaSet,   ///< Metadata only: the Deployment controller copies the Deployment's annotations to it.
  StatefulSet,  ///< Metadata only.
  PodDisruptionBudget,
  PodGroup,
  ConfigMap,
  Lease,  ///< Only the election's own.
};
/// Those that the World is made of, and the ConfigMaps.
inline constexpr std::array<Kind, 12> kAllKinds = {
    Kind::Pod,         Kind::ResourceClaim,       Kind::ResourceSlice, Kind::Node,
    Kind::Namespace,   Kind::DeviceTaintRule,     Kind::Job,           Kind::ReplicaSet,
    Kind::StatefulSet, Kind::PodDisruptionBudget, Kind::PodGroup,      Kind::ConfigMap};

/// A Namespace: its labels and annotations.
struct Namespace {
  Meta meta;
  friend bool operator==(const Namespace&, const Namespace&) = default;
};

/// A ReplicaSet or StatefulSet, read as PartialObjectMetadata.
struct Owner {
  Kind kind = Kind::ReplicaSet;
  Meta meta;
  friend bool operator==(const Owner&, const Owner&) = default;
};

/// What the API server's eviction controller says of a DeviceTaintRule; its numbers exist only in the English sentence.
/// **Source:** KEP-5055, seen on 1.37.1: written within a second after each change of the spec.
struct EvictionInProgress {
  std::int64_t observed_generation = 0;
  std::string status;
  std::string reason;
  std::string message;
  friend bool operator==(const EvictionInProgress&, const EvictionInProgress&) = default;
};

/// The part of DeviceTaintRule that we read: an absent selector selects nothing, an absent part of it selects all.
/// **Source:** KEP-5055.
struct DeviceTaintRule {
  Meta meta;
  bool has_selector = false;
  std::optional<std::string> driver;
  std::optional<std::string> pool;
  std::optional<std::string> device;
  bool has_other_selectors =
      false;  ///< A part that we cannot judge, such as CEL: it may select less than the rest says.
              ///< **Source:** deviceClassName and selectors of v1alpha3 before 1.35.
  Taint taint;
  std::int64_t generation = 0;  ///< metadata.generation: counts changes of the spec.
  std::optional<EvictionInProgress> progress = {};
  friend bool operator==(const DeviceTaintRule&, const DeviceTaintRule&) = default;
};

/// A ConfigMap's text entries.
struct ConfigMap {
  Meta meta;
  std::map<std::string, std::string, std::less<>> data;
  friend bool operator==(const ConfigMap&, const ConfigMap&) = default;
};

using Object = std::variant<Pod, ResourceClaim, ResourceSlice, Node, Namespace, DeviceTaintRule, Job, Owner,
                            DisruptionBudget, PodGroup, ConfigMap, Lease>;

[[nodiscard]] Kind kind_of(const Object& object);
[[nodiscard]] const Meta& meta_of(const Object& object);

/// The kind's name in the API, such as `ResourceClaim`.
[[nodiscard]] std::string_view to_string(Kind kind);

}  // namespace dhc::k8s
