#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "domain/incidents/incident_store.h"

namespace dhc {

/// The most that we write: a little less than a ConfigMap may hold. **Source:** core/v1: 1 MiB.
inline constexpr std::size_t kStateLimit = 960UL * 1024;

/// A part of the state beside the devices, under a name of its own; versions that do not know it keep it as it is.
struct StateSection {
  std::string name;
  std::string text;  ///< JSON.
  friend bool operator==(const StateSection&, const StateSection&) = default;
};
/// The section that says which state of 0.1.0 has been taken over: a JSON string, its ConfigMap's UID and version.
inline constexpr std::string_view kImportedSection = "imported";
/// The most that is kept of sections that this version does not know.
inline constexpr std::size_t kUnknownLimit = 64UL * 1024;

/// What the state ConfigMap says.
struct StateContent {
  std::vector<DeviceRecord> records;
  std::vector<DeviceRecord> departed;
  std::vector<StateSection> sections;  ///< All others, known or not.
  CapBook caps;
  /// A newer version of this program wrote it: it is neither understood nor written over.
  std::optional<std::uint64_t> newer_version;
  std::optional<std::string> damage;  ///< What could not be read; the rest stands.
};

/// What is written.
struct StateText {
  std::string text;
  std::size_t left_out = 0;  ///< Records that did not fit: the lightest and oldest first, open incidents last.
};

/// Everything of the incident store that must survive a restart, and the sections as they are, as JSON of at most
/// `limit` bytes. What counts against the caps has a budget of its own; the devices' histories get the rest.
[[nodiscard]] StateText state_text(const IncidentStore& incidents, const std::vector<StateSection>& sections = {},
                                   std::size_t limit = kStateLimit);

/// Reads what `state_text` made, by this version or an older one, 0.1.0 among them; hostile text is only damage.
[[nodiscard]] StateContent parse_state(std::string_view text);

}  // namespace dhc
