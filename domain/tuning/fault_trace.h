#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ratio>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"

namespace dhc::tuning {

/// Of 24 hours, with a fraction.
using Days = std::chrono::duration<double, std::ratio<86400>>;

/// From when to when; the ends may be the same moment.
struct Span {
  WallTime from;
  WallTime to;
  friend bool operator==(const Span&, const Span&) = default;
};

/// One time that a device was bad.
struct Fault {
  WallTime from;
  WallTime to;
  /// Until when somebody is known to have called it bad; between then and `to` nobody can tell. None: until `to`.
  std::optional<WallTime> told_to = {};
};

/// What a trace tells of one device that broke.
struct BrokenDevice {
  std::string name;
  std::vector<Span> in_service;  ///< Oldest first, apart from each other.
  std::vector<Fault> faults;     ///< By their beginning.
  std::string scope = {};        ///< Driver or resource; empty: the trace does not say.
  std::string node = {};         ///< Empty: the trace does not say, or the device is the node.
  /// The physical card that it shares with others of `broken`; empty: it is one.
  std::string card = {};

  [[nodiscard]] const std::string& card_name() const { return card.empty() ? name : card; }
};

/// The faults of one fleet.
struct FaultTrace {
  std::string unit;                       ///< What a device is in it, in the plural: `servers`.
  std::size_t devices = 0;                ///< Physical cards, those that never broke included.
  double device_days = 0;                 ///< In service, all devices together.
  std::vector<BrokenDevice> broken = {};  ///< By name.
  WallTime from = {};
  WallTime to = {};
  bool has_lengths = true;  ///< False: it tells when a device broke, and not for how long.
  /// How many physical cards there are of a driver or resource, on a node or (empty node) in all.
  std::map<std::pair<std::string, std::string>, std::int64_t> known = {};
  std::vector<std::string> remarks = {};  ///< What it does not know, a sentence each.
};

}  // namespace dhc::tuning
