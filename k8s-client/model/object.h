#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "k8s-client/model/meta.h"
#include "k8s-client/model/node.h"
#include "k8s-client/model/pod.h"
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
  Job,          ///< Metadata only until something reads more of it.
  ReplicaSet,   ///< Metadata only: the Deployment controller copies the Deployment's annotations to it.
  StatefulSet,  ///< Metadata only.
  ConfigMap,
};
inline constexpr std::array<Kind, 10> kAllKinds = {
    Kind::Pod, Kind::ResourceClaim, Kind::ResourceSlice, Kind::Node,     Kind::Namespace, Kind::DeviceTaintRule,
    Kind::Job, Kind::ReplicaSet,    Kind::StatefulSet,   Kind::ConfigMap};

/// A Namespace: its labels and annotations.
struct Namespace {
  Meta meta;
  friend bool operator==(const Namespace&, const Namespace&) = default;
};

/// A Job, ReplicaSet or StatefulSet, read as PartialObjectMetadata.
struct Owner {
  Kind kind = Kind::Job;
  Meta meta;
  friend bool operator==(const Owner&, const Owner&) = default;
};

/// The part of DeviceTaintRule that we read: an absent selector selects nothing, an absent part of it selects all.
/// **Source:** KEP-5055.
struct DeviceTaintRule {
  Meta meta;
  bool has_selector = false;
  std::optional<std::string> driver;
  std::optional<std::string> pool;
  std::optional<std::string> device;
  Taint taint;
  friend bool operator==(const DeviceTaintRule&, const DeviceTaintRule&) = default;
};

/// A ConfigMap's text entries.
struct ConfigMap {
  Meta meta;
  std::map<std::string, std::string, std::less<>> data;
  friend bool operator==(const ConfigMap&, const ConfigMap&) = default;
};

using Object = std::variant<Pod, ResourceClaim, ResourceSlice, Node, Namespace, DeviceTaintRule, Owner, ConfigMap>;

[[nodiscard]] Kind kind_of(const Object& object);
[[nodiscard]] const Meta& meta_of(const Object& object);

/// The kind's name in the API, such as `ResourceClaim`.
[[nodiscard]] std::string_view to_string(Kind kind);

}  // namespace dhc::k8s
