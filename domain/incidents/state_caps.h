#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include <nlohmann/json_fwd.hpp>

#include "domain/limits/cap_book.h"

namespace dhc {

/// The most of the state that what counts against the caps may take: evictions that would need more wait.
inline constexpr std::size_t kCapsLimit = 320UL * 1024;

/// The section `caps` of the state; empty if there is nothing to be remembered. Over the limit, first the devices that
/// our taints alone keep out of service are left out, because the taints tell of them; then neighbouring counts of
/// evictions become one. Charges and devices from which pods were evicted are always there.
[[nodiscard]] std::string caps_text(const CapBook& book, std::size_t limit = kCapsLimit);

/// Bytes that what is always there takes, generously; and, of a charge that has not counted, what its device will take
/// once it has.
[[nodiscard]] std::size_t size_of_caps(const CapBook& book);

/// The same as charges come and go.
class CapsSize {
 public:
  explicit CapsSize(const CapBook& book);
  void add(const EvictionCharge& charge);
  /// One of those that are there.
  void drop(const EvictionCharge& charge);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  using Group = std::tuple<DeviceKey::Source, SharedText, WallTime>;

  std::size_t bytes_ = 0;
  std::map<Group, std::size_t> groups_;  // of charges that are written together, and how many
};

/// Reads such a section; `bad` counts the entries that are none of ours.
[[nodiscard]] CapBook read_caps(const nlohmann::ordered_json& json, std::size_t& bad);

}  // namespace dhc
