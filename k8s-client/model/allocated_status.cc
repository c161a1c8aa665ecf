#include "k8s-client/model/allocated_status.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "base/printable.h"

namespace dhc::k8s {

namespace {

bool read_health(JsonValue value, Fault& fault, ReportedDevice& device) {
  std::string word;
  if (!read_name(value, fault, word)) return false;
  note_health(word, device);
  return true;
}

bool read_reported_device(JsonValue value, Fault& fault, ReportedDevice& device) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "resourceID") return read_name(field, fault, device.resource_id) || fault.in(key);
    if (key == "health") return read_health(field, fault, device) || fault.in(key);
    if (key == "message") return read_message(field, fault, device.message) || fault.in(key);
    return true;
  });
}

bool read_state(JsonValue value, Fault& fault, ContainerState& state) {
  state = {};
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key != "terminated" && key != "running") return true;
    const bool read = each_field(field, fault, [&](std::string_view part, JsonValue inner) {
      if (part == (key == "running" ? "startedAt" : "finishedAt")) {
        return read_time(inner, fault, state.turned) || fault.in(part);
      }
      if (part != "exitCode") return true;
      std::optional<std::int64_t> exit_code;
      if (!read_integer(inner, fault, exit_code)) return fault.in(part);
      state.exit_code = exit_code.value_or(0);
      return true;
    });
    return read || fault.in(key);
  });
}

// By ID; of one ID the worst first, then by message, so that the result does not depend on the order.
void sort_devices(SlimVector<ReportedDevice>& devices) {
  std::ranges::sort(devices, [](const ReportedDevice& a, const ReportedDevice& b) {
    return std::tie(a.resource_id, b.health, b.message, b.other_word) <
           std::tie(b.resource_id, a.health, a.message, a.other_word);
  });
  for (auto at = devices.begin(); at != devices.end();) {
    const auto worst = at++;
    auto& containers = worst->containers;
    for (; at != devices.end() && at->resource_id == worst->resource_id; ++at) {
      std::ranges::move(at->containers, std::back_inserter(containers));
      worst->restarts += at->restarts;
    }
    std::ranges::sort(containers);
    const auto doubled = std::ranges::unique(containers);
    containers.erase(doubled.begin(), doubled.end());
  }
  const auto repeated = std::ranges::unique(devices, {}, &ReportedDevice::resource_id);
  devices.erase(repeated.begin(), repeated.end());
  devices.shrink_to_fit();
}

}  // namespace

void note_health(std::string_view word, ReportedDevice& device) {
  device.health = Health::Unknown;
  device.other_word = {};
  for (const auto health : {Health::Healthy, Health::Unknown, Health::Unhealthy}) {
    if (word != to_string(health)) continue;
    device.health = health;
    return;
  }
  if (!word.empty()) device.other_word = printable_cut(word, kLongestHealthWord);
}

void note_container(const ContainerWord& word, std::size_t first, ContainerReports& reports) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // of the API's field; sums stay in range
  for (auto& entry : std::span(reports.allocated).subspan(first)) {
    if (word.name.empty()) break;
    for (auto& device : entry.devices) {
      device.containers.push_back(word.name);
      device.restarts = std::clamp<std::int64_t>(word.restarts, 0, kMost);
    }
  }
  reports.last_start = std::max({reports.last_start, word.state.turned, word.before.turned});
  if (word.state.exit_code != 0) reports.exits.push_back({word.name, word.state.exit_code});
}

bool read_allocated_resource(JsonValue value, Fault& fault, AllocatedResource& resource) {
  const bool read = each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "name") return read_name(field, fault, resource.name) || fault.in(key);
    if (key == "resources") return read_list(field, fault, resource.devices, read_reported_device) || fault.in(key);
    return true;
  });
  return read && require(resource.name, fault, "name");
}

bool read_container_reports(JsonValue value, Fault& fault, ContainerReports& reports) {
  reports = {};
  std::vector<AllocatedResource> of_container;
  return each_item(value, fault, [&](JsonValue container) {
    of_container.clear();
    ContainerWord word;
    std::optional<std::int64_t> restarts;
    const bool read = each_field(container, fault, [&](std::string_view key, JsonValue field) {
      if (key == "name") return read_name(field, fault, word.name) || fault.in(key);
      if (key == "restartCount") return read_integer(field, fault, restarts) || fault.in(key);
      if (key == "state") return read_state(field, fault, word.state) || fault.in(key);
      if (key == "lastState") return read_state(field, fault, word.before) || fault.in(key);
      if (key != "allocatedResourcesStatus") return true;
      return read_list(field, fault, of_container, read_allocated_resource) || fault.in(key);
    });
    const auto first = reports.allocated.size();
    std::ranges::move(of_container, std::back_inserter(reports.allocated));
    word.restarts = restarts.value_or(0);
    note_container(word, first, reports);
    return read;
  });
}

std::vector<AllocatedResource> merge_allocated(std::span<std::vector<AllocatedResource>> lists) {
  std::vector<AllocatedResource> all;
  for (auto& list : lists) {
    if (all.empty()) {
      all = std::move(list);
    } else {
      std::ranges::move(list, std::back_inserter(all));
    }
  }
  std::ranges::sort(all, {}, &AllocatedResource::name);
  auto last = all.begin();
  for (auto at = all.begin(); at != all.end(); ++at) {
    if (at == last) continue;
    if (at->name == last->name) {
      std::ranges::move(at->devices, std::back_inserter(last->devices));
    } else if (++last != at) {
      *last = std::move(*at);
    }
  }
  if (!all.empty()) all.erase(last + 1, all.end());
  for (auto& resource : all) sort_devices(resource.devices);
  return all;
}

}  // namespace dhc::k8s
