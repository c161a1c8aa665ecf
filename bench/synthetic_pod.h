#pragma once
#include <string>

namespace dhc::bench {

/// A pod of about 9 KB as a server sends it, managedFields and all.
struct SyntheticPod {
  int number = 0;
  bool with_device = true;  ///< Holds one plugin device, Healthy.
};
[[nodiscard]] std::string to_json(const SyntheticPod& pod);

}  // namespace dhc::bench
