#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/incidents/state_text.h"
#include "reconcilers/incident_state/action.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc::incident_state {

/// How often the state is written at most,
inline constexpr Millis kWriteInterval = Seconds(5);
/// and while evictions wait for their charge: the state's share of etcd's writes, of which what a quiet minute has left
/// over may be used at once. A new term begins with nothing left over (invariant I18).
inline constexpr std::int64_t kStateBytesPerMinute = std::int64_t{15} * 1024 * 1024;
/// What one write has cost, the next one waits for, so that it carries all charges that come together meanwhile.
inline constexpr std::size_t kBurstBytesPerSecond = std::size_t{4} * 1024 * 1024;
inline constexpr Millis kShortestChargeInterval{5};
/// Between two writes of a state of this many bytes.
[[nodiscard]] Millis charge_interval(std::size_t size);

/// What is known of the state ConfigMap.
struct StateFile {
  std::optional<std::uint64_t> saved = 0;  ///< The store's revision that was last accepted; none: it is to be written.
  bool unread = false;                     ///< It could not be read in time: it is not written either.
  std::optional<std::uint64_t> newer_version;  ///< Of a newer program: it is not written over.
  std::uint64_t accepted = 0;                  ///< The latest revision that was loaded, or whose write was accepted.
  std::size_t size = 0;                        ///< Bytes that were last loaded or written.
  bool for_charges = false;                    ///< Evictions waited for what was sent last.
  std::size_t left_out = 0;                    ///< Records that did not fit when it was last written.
  WallTime since;                              ///< When it was last loaded or written.
  std::optional<std::string> damage;           ///< What could not be read when it was loaded, until it is written anew.
  std::string uid;                             ///< Of the ConfigMap as it was last seen; empty: there is none.
  std::string version;                         ///< Its resourceVersion.
  std::vector<StateSection> unknown;           ///< Sections of a newer version, written again as they were.
  std::string imported;                        ///< Which state of 0.1.0 has been taken over: UID and version.
  std::uint64_t term = 0;                      ///< Counts the times that we began to lead.
};

/// Writes the incident store down when it has changed, in every mode (invariant I7), if we know our own namespace.
[[nodiscard]] Planned<WriteState> plan(const PlanInput& input, const StateFile& file);

}  // namespace dhc::incident_state
