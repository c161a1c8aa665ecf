#pragma once
#include <cstdint>
#include <vector>

#include "k8s-client/model/proto_reading.h"
#include "k8s-client/model/scheduling.h"

namespace dhc::k8s::proto {

/// Reads one toleration, of a pod or of an allocated device: both have the same fields. One that says nothing is left
/// out. **Source:** core/v1 generated.proto, Toleration; resource/v1 generated.proto, DeviceToleration.
bool read_toleration(const Value& value, Fault& fault, std::vector<Toleration>& tolerations);

/// Which nodes a pod accepts, gathered field by field.
class SchedulingReader {
 public:
  /// Reads one field of a pod's spec if it is about scheduling; any other is left alone. **Source:** core/v1
  /// generated.proto, PodSpec.
  bool read_field(std::uint32_t tag, const Value& value, Fault& fault);

  [[nodiscard]] SchedulingTerms take();

 private:
  bool read_selector_entry(const Value& value, Fault& fault);

  SchedulingTerms terms_;
  std::vector<MapEntry<std::string_view>> selector_;
};

}  // namespace dhc::k8s::proto
