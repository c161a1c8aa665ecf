#pragma once
#include <string_view>

namespace dhc {

/// The words that we write into the cluster; each is ours alone.
inline constexpr std::string_view kConditionType = "device-health.io/DeviceUnhealthy";
inline constexpr std::string_view kOptOutAnnotation = "device-health.io/opt-out";
inline constexpr std::string_view kBrakeReleaseAnnotation = "device-health.io/brake-release";

/// Kubernetes' own words that decisions depend on.
inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";
/// **Source:** seen on 1.37.1: the reason that the Eviction API gives its DisruptionTarget condition.
inline constexpr std::string_view kEvictedByApi = "EvictionByEvictionAPI";

}  // namespace dhc
