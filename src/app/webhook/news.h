#pragma once
#include <string>
#include <string_view>

#include "base/now.h"

namespace dhc {

/// One fact that the webhook tells.
struct News {
  std::string id;         ///< The same for the same fact, in every process: who has seen it drops the second.
  std::string_view type;  ///< Such as `io.device-health.pod.evicted`; never given another meaning.
  std::string subject;    ///< A device as `to_string(DeviceKey)`, `Pod/NAMESPACE/NAME` or `Node/NAME`.
  WallTime at;            ///< When it became so.
  std::string data;       ///< A JSON object.
  friend bool operator==(const News&, const News&) = default;
};

}  // namespace dhc
