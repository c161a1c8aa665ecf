#pragma once
#include "simulator/node/shape.h"

inline constexpr auto kGpu = "example.com/gpu";
inline constexpr auto kDriver = "gpu.example.com";

/// A pod with one device of a plugin.
inline dhc::sim::PodShape plugin_pod() {
  dhc::sim::PodShape shape;
  shape.resource = kGpu;
  return shape;
}

/// A pod with one device of a claim.
inline dhc::sim::PodShape dra_pod() {
  dhc::sim::PodShape shape;
  shape.device_class = kDriver;
  return shape;
}
