#include "k8s-client/model/decode_node.h"

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

bool read_spec(JsonValue value, Fault& fault, Node& node) {
  node.unschedulable = false;
  node.taints.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "unschedulable") return read_bool(field, fault, node.unschedulable) || fault.in(key);
    if (key == "taints") return read_list(field, fault, node.taints, read_taint) || fault.in(key);
    return true;
  });
}

bool read_conditions(JsonValue value, Fault& fault, const KeptFields& kept, Node& node) {
  node.ready = false;
  node.lifecycle.clear();
  node.kept.clear();
  return each_item(value, fault, [&](JsonValue item) {
    Condition condition;
    if (!read_condition(item, fault, condition)) return false;
    note_condition(node, condition, kept);
    return true;
  });
}

bool read_node_info(JsonValue value, Fault& fault, Node& node) {
  node.boot_id.clear();
  node.kubelet_version.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "bootID") return read_name(field, fault, node.boot_id) || fault.in(key);
    if (key == "kubeletVersion") return read_name(field, fault, node.kubelet_version) || fault.in(key);
    return true;
  });
}

bool read_status(JsonValue value, Fault& fault, const KeptFields& kept, Node& node) {
  node.ready = false;
  node.lifecycle.clear();
  node.kept.clear();
  node.boot_id.clear();
  node.kubelet_version.clear();
  node.capacity.clear();
  node.allocatable.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "conditions") return read_conditions(field, fault, kept, node) || fault.in(key);
    if (key == "nodeInfo") return read_node_info(field, fault, node) || fault.in(key);
    if (key == "capacity") return read_amounts(field, fault, node.capacity) || fault.in(key);
    if (key == "allocatable") return read_amounts(field, fault, node.allocatable) || fault.in(key);
    return true;
  });
}

}  // namespace

bool read_node(JsonObject root, Fault& fault, const KeptFields& kept, Node& node) {
  return read_root(root, fault, kept, Kind::Node, node.meta, [&](std::string_view key, JsonValue value) {
    if (key == "spec") return read_spec(value, fault, node);
    if (key == "status") return read_status(value, fault, kept, node);
    return true;
  });
}

}  // namespace dhc::k8s
