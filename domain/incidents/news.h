#pragma once
#include <memory>
#include <string>

#include "base/now.h"

namespace dhc {

/// One fact that the webhook tells.
struct News {
  std::string id;       ///< The same for the same fact, in every process: who has seen it drops the second.
  std::string type;     ///< Such as `io.device-health.pod.evicted`; never given another meaning.
  std::string subject;  ///< A device as `to_string(DeviceKey)`, `Pod/NAMESPACE/NAME` or `Node/NAME`.
  WallTime at;          ///< When it became so.
  std::string data;     ///< A JSON object.
  friend bool operator==(const News&, const News&) = default;
};

/// Of the hour before, for the next leader.
struct RecentNews {
  std::shared_ptr<const News> news;
  bool follows = false;  ///< The incidents that are remembered tell it as well.
};

}  // namespace dhc
