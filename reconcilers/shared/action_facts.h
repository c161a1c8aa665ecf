#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "domain/cluster/views.h"

namespace dhc {

/// Requests of one queue wait for each other; each queue has threads of its own.
enum class Queue : std::uint8_t { Evictions, Taints, Jobs, Objects, Conditions, State, StatusMap, Events, Reads };

/// The request tracker's key of a write to one object, the version of it that the World showed, and what is asked of it
/// where the same again means that it did not stay, as the watches `shown_by` show.
struct WriteKey {
  std::string key;
  std::string seen_version;
  std::string asks{};
  bool begins = false;  ///< Something on the object that was not there before, by what is known.
  KindSet shown_by{};
};

/// What an action says of itself: every action has `facts()`, `words()` and `write_key()`, and nothing else asks which
/// one it is. Views into the action.
struct ActionFacts {
  std::string_view name;  ///< In logs, and the label of metrics: never changed.
  std::string_view kind;  ///< Of the object that is read or written.
  std::string_view ns;
  std::string_view object;
  std::string_view uid;
  std::string_view what;  ///< The device, or the word of a condition or Event.
  Queue queue;
  bool is_notable = false;   ///< Changes the cluster for others: logged at info when it is done.
  bool makes_taint = false;  ///< One that was not there, of which `taints.perMinute` are allowed.
  // for metrics; empty: none, or not known
  std::string_view policy = {};
  std::string_view driver = {};    ///< Of the DRA device,
  std::string_view resource = {};  ///< or of the device-plugin device.
};

}  // namespace dhc
