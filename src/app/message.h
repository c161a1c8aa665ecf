#pragma once
#include <cstdint>
#include <memory>
#include <variant>

#include "base/error.h"
#include "base/now.h"
#include "domain/policy.h"
#include "k8s-client/protocol/delivery.h"
#include "reconcilers/eviction/action.h"
#include "reconcilers/notice/action.h"

namespace dhc {

/// All that the controller can ask for. Each reconciler brings its own alternatives.
using Action = std::variant<eviction::EvictPod, notice::ApplyCondition, notice::EmitEvent>;

/// What became of one action.
struct Outcome {
  Action action;
  Status status;
};

/// A new valid configuration.
struct PolicyChanged {
  std::shared_ptr<const Policy> policy;
};

/// The configuration could not be read; the last good one stays.
struct PolicyRejected {
  std::string why;  ///< The first mistake, with its place.
};

/// Time has passed.
struct Tick {};

/// All that enters the controller.
using Message = std::variant<k8s::Delivery, Outcome, PolicyChanged, PolicyRejected, Tick>;

}  // namespace dhc
