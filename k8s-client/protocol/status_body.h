#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc::k8s {

/// One cause of a refusal.
struct StatusCause {
  std::string reason;
  std::string message;
  std::string field;
};

/// The parts of a meta/v1 Status that decide.
struct StatusBody {
  std::int64_t code = 0;
  std::string reason;
  std::string message;
  std::vector<StatusCause> causes;
  std::optional<Millis> retry_after;
};

/// Reads a Status in JSON or in Kubernetes' protobuf; nothing if the body is none, or larger than 1 MiB.
[[nodiscard]] std::optional<StatusBody> read_status_body(std::string_view body);

}  // namespace dhc::k8s
