#include <chrono>
#include <fstream>
#include <malloc.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "bench/allocations.h"
#include "bench/benches.h"
#include "bench/synthetic_pod.h"
#include "domain/cluster/world.h"
#include "domain/contract/names.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/model/shared_parts.h"

namespace dhc::bench {

namespace {

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  in >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// A pod with a device may cost no more than this, the C library's own part included.
constexpr double kMostResident = 2050;

/// Resident bytes for each pod.
double fill(std::string_view what, int pods, bool with_device) {
  World world;
  k8s::Decoder decoder(k8s::Kind::Pod, kKeptFields);
  k8s::SharedParts shared;
  const Now now{MonoTime{}, WallTime{std::chrono::days{20'000}}};
  malloc_trim(0);
  const auto resident = resident_bytes();
  const auto live = allocations().live_bytes;
  for (int i = 0; i < pods; ++i) {
    auto pod = decoder.decode_object(to_json({i, with_device}));
    if (!pod) continue;
    shared.share(*pod);
    world.apply(k8s::Upsert{*std::move(pod)}, now);
    if (i % 500 == 499) world.refresh(now);
  }
  world.refresh(now);
  malloc_trim(0);
  const auto each = [&](std::size_t after, std::size_t before) {
    return (static_cast<double>(after) - static_cast<double>(before)) / pods;
  };
  const auto each_resident = each(resident_bytes(), resident);
  fmt::print("{:<44} {:>8} {:>12.0f} {:>12.0f}\n", what, pods, each_resident, each(allocations().live_bytes, live));
  return each_resident;
}

}  // namespace

bool world_memory() {
  fmt::print("\n{:<44} {:>8} {:>12} {:>12}\n", "kept for each pod, in bytes", "pods", "resident", "allocated");
  const auto with_device = fill("pods with one plugin device", 20'000, true);
  fill("pods without devices", 20'000, false);
  if (with_device <= kMostResident) return true;
  fmt::print(stderr, "bench: {:.0f} resident bytes for each pod with a device, at most {:.0f} are allowed\n",
             with_device, kMostResident);
  return false;
}

}  // namespace dhc::bench
