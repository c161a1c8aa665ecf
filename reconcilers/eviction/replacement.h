#pragma once
#include <map>
#include <string>

#include "domain/scene.h"

namespace dhc::eviction {

/// Counts devices that a replacement could get; answers are kept for the turn. Approximate: nothing is known of
/// selectors and device classes.
class ReplacementCount {
 public:
  explicit ReplacementCount(const Scene& scene) : scene_(scene) {}

  /// Healthy, free, untainted devices of the same driver or resource.
  [[nodiscard]] std::int64_t free_like(const DeviceKey& key);

 private:
  [[nodiscard]] std::int64_t free_dra(const std::string& driver) const;
  [[nodiscard]] std::int64_t free_plugin(const std::string& resource) const;

  const Scene& scene_;
  std::map<std::string, std::int64_t> dra_;
  std::map<std::string, std::int64_t> plugin_;
};

}  // namespace dhc::eviction
