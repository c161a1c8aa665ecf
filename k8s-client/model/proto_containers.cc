#include "k8s-client/model/proto_containers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "k8s-client/model/proto_meta.h"

namespace dhc::k8s::proto {

namespace {

// **Source:** core/v1 generated.proto, ResourceRequirements.
bool read_resources(const Value& value, Fault& fault, std::vector<ResourceAmount>& limits, bool& has_claims) {
  Amounts amounts;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 3) has_claims = true;
    return tag != 1 || amounts.read_entry(field, fault) || fault.in("limits");
  });
  if (read) limits = amounts.take();
  return read;
}

bool read_health(const Value& value, Fault& fault, ReportedDevice& device) {
  std::string word;
  if (!read_name(value, fault, word)) return false;
  note_health(word, device);
  return true;
}

// **Source:** core/v1 generated.proto, ResourceHealth.
bool read_reported_device(const Value& value, Fault& fault, ReportedDevice& device) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, device.resource_id) || fault.in("resourceID");
      case 2:
        return read_health(field, fault, device) || fault.in("health");
      case 6:
        return read_message(field, fault, device.message) || fault.in("message");
      default:
        return true;
    }
  });
}

// **Source:** core/v1 generated.proto, ResourceStatus.
bool read_allocated_resource(const Value& value, Fault& fault, AllocatedResource& resource) {
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, resource.name) || fault.in("name");
    if (tag == 2) return read_item(field, fault, resource.devices, read_reported_device) || fault.in("resources");
    return true;
  });
  return read && require(resource.name, fault, "name");
}

// **Source:** core/v1 generated.proto, ContainerStateRunning.
bool read_running(const Value& value, Fault& fault, ContainerState& state) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    return tag != 1 || read_time(field, fault, state.turned) || fault.in("startedAt");
  });
}

// **Source:** core/v1 generated.proto, ContainerStateTerminated.
bool read_terminated(const Value& value, Fault& fault, ContainerState& state) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_number(field, fault, state.exit_code) || fault.in("exitCode");
    if (tag == 6) return read_time(field, fault, state.turned) || fault.in("finishedAt");
    return true;
  });
}

// **Source:** core/v1 generated.proto, ContainerState.
bool read_state(const Value& value, Fault& fault, ContainerState& state) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 2) return read_running(field, fault, state) || fault.in("running");
    if (tag == 3) return read_terminated(field, fault, state) || fault.in("terminated");
    return true;
  });
}

}  // namespace

bool read_request(const Value& value, Fault& fault, InitRequest& request) {
  std::string restart_policy;
  bool has_claims = false;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 8) return read_resources(field, fault, request.limits, has_claims) || fault.in("resources");
    if (tag == 24) return read_name(field, fault, restart_policy) || fault.in("restartPolicy");
    return true;
  });
  request.sidecar = restart_policy == "Always";
  return read;
}

// **Source:** core/v1 generated.proto, Container.
bool read_container(const Value& value, Fault& fault, std::vector<ResourceAmount>& sum,
                    std::vector<ContainerImage>& images) {
  std::vector<ResourceAmount> limits;
  ContainerImage container;
  bool has_claims = false;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return read_name(field, fault, container.container) || fault.in("name");
    if (tag == 2) return read_text(field, fault, container.image) || fault.in("image");
    return tag != 8 || read_resources(field, fault, limits, has_claims) || fault.in("resources");
  });
  note_image(std::move(container), limits, has_claims, images);
  return read && add_limits(limits, fault, sum);
}

// **Source:** core/v1 generated.proto, ContainerStatus.
bool read_container_report(const Value& value, Fault& fault, ContainerReports& reports) {
  ContainerWord word;
  const auto first = reports.allocated.size();
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 1:
        return read_name(field, fault, word.name) || fault.in("name");
      case 2:
        return read_state(field, fault, word.state) || fault.in("state");
      case 3:
        return read_state(field, fault, word.before) || fault.in("lastState");
      case 5:
        return read_number(field, fault, word.restarts) || fault.in("restartCount");
      case 14:
        return read_item(field, fault, reports.allocated, read_allocated_resource) ||
               fault.in("allocatedResourcesStatus");
      default:
        return true;
    }
  });
  note_container(word, first, reports);
  return read;
}

}  // namespace dhc::k8s::proto
