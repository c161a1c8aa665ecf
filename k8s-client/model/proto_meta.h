#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/model/decode_meta.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/proto_reading.h"

namespace dhc::k8s::proto {

/// Reads the metadata, and the generation for the kinds that look at it. **Source:** meta/v1 generated.proto,
/// ObjectMeta.
bool read_meta(std::string_view message, Fault& fault, const KeptFields& kept, Meta& meta,
               std::int64_t* generation = nullptr);

/// One condition, of a pod, a node, a Job or a claim's device: all number their fields alike. **Source:** core/v1
/// PodCondition and NodeCondition, batch/v1 JobCondition, meta/v1 Condition.
bool read_condition(const Value& value, Fault& fault, Condition& condition);

/// One taint, of a node or a device: both number their fields alike. **Source:** core/v1 Taint, resource/v1
/// DeviceTaint.
bool read_taint(const Value& value, Fault& fault, Taint& taint);

/// The extended resources of a resource list, one entry at a time. **Source:** core/v1 ResourceList:
/// map<string, Quantity>, api/resource generated.proto: Quantity.
class Amounts {
 public:
  bool read_entry(const Value& value, Fault& fault);
  /// Sorted by name.
  [[nodiscard]] std::vector<ResourceAmount> take() { return to_map(entries_); }

 private:
  std::vector<MapEntry<std::int64_t>> entries_;
};

/// Reads a whole object, of which field 1 is the metadata; `on_field(tag, value)` gets the others and names the field
/// of its own faults.
template <class OnField>
bool read_root(std::string_view message, Fault& fault, const KeptFields& kept, Kind kind, Meta& meta,
               OnField&& on_field, std::int64_t* generation = nullptr) {
  std::string joined;
  std::string_view metadata;
  const bool read = each_field(message, fault, [&](std::uint32_t tag, const Value& value) {
    return tag == 1 ? read_part(value, fault, joined, metadata) || fault.in("metadata") : on_field(tag, value);
  });
  if (!read) return false;
  if (!read_meta(metadata, fault, kept, meta, generation)) return fault.in("metadata");
  return require_identity(meta, kind, fault);
}

}  // namespace dhc::k8s::proto
