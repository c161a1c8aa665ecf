#pragma once
#include "k8s-client/model/decoder.h"

/// What this project has its decoders keep.
inline constexpr dhc::k8s::KeptFields kKept = {.prefix = "device-health.io/"};
