#include <cstdint>

#include "k8s-client/model/proto_meta.h"
#include "k8s-client/model/proto_objects.h"

namespace dhc::k8s::proto {

namespace {

// **Source:** core/v1 generated.proto, NodeSpec.
bool read_node_spec(const Value& value, Fault& fault, Node& node) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 4) return read_bool(field, fault, node.unschedulable) || fault.in("unschedulable");
    if (tag == 5) return read_item(field, fault, node.taints, read_taint) || fault.in("taints");
    return true;
  });
}

bool read_node_condition(const Value& value, Fault& fault, const KeptFields& kept, Node& node) {
  Condition condition;
  if (!read_condition(value, fault, condition)) return false;
  note_condition(node, condition, kept);
  return true;
}

// **Source:** core/v1 generated.proto, NodeSystemInfo.
bool read_node_info(const Value& value, Fault& fault, Node& node) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 3) return read_name(field, fault, node.boot_id) || fault.in("bootID");
    if (tag == 7) return read_name(field, fault, node.kubelet_version) || fault.in("kubeletVersion");
    return true;
  });
}

// **Source:** core/v1 generated.proto, NodeStatus.
bool read_node_status(const Value& value, Fault& fault, const KeptFields& kept, Node& node, Amounts& capacity,
                      Amounts& allocatable) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return capacity.read_entry(field, fault) || fault.in("capacity");
      case 2:
        return allocatable.read_entry(field, fault) || fault.in("allocatable");
      case 4:
        return read_node_condition(field, fault, kept, node) || fault.in("conditions");
      case 7:
        return read_node_info(field, fault, node) || fault.in("nodeInfo");
      default:
        return true;
    }
  });
}

}  // namespace

bool read_node(std::string_view message, Fault& fault, const KeptFields& kept, Node& node) {
  Amounts capacity;
  Amounts allocatable;
  const bool read = read_root(message, fault, kept, Kind::Node, node.meta, [&](std::uint32_t tag, const Value& value) {
    if (tag == 2) return read_node_spec(value, fault, node) || fault.in("spec");
    if (tag == 3) return read_node_status(value, fault, kept, node, capacity, allocatable) || fault.in("status");
    return true;
  });
  node.capacity = capacity.take();
  node.allocatable = allocatable.take();
  return read;
}

bool read_namespace(std::string_view message, Fault& fault, const KeptFields& kept, Namespace& space) {
  const auto no_other = [](std::uint32_t, const Value&) { return true; };
  return read_root(message, fault, kept, Kind::Namespace, space.meta, no_other);
}

}  // namespace dhc::k8s::proto
