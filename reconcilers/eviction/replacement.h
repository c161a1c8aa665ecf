#pragma once
#include <map>
#include <string>

#include "domain/scene.h"

namespace dhc::eviction {

/// Looks for a device that a replacement could get; answers are kept for the turn. Approximate: nothing is known of
/// selectors and device classes.
class ReplacementSearch {
 public:
  explicit ReplacementSearch(const Scene& scene) : scene_(scene) {}

  /// Whether a healthy, free, untainted device of the same driver or resource is known.
  [[nodiscard]] bool finds_one_like(const DeviceKey& key);

 private:
  [[nodiscard]] bool finds_dra(const std::string& driver) const;
  [[nodiscard]] bool finds_plugin(const std::string& resource) const;

  const Scene& scene_;
  std::map<std::string, bool> dra_;
  std::map<std::string, bool> plugin_;
};

}  // namespace dhc::eviction
