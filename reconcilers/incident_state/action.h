#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reconcilers/shared/action_facts.h"

namespace dhc::incident_state {

/// Server-side apply of the state ConfigMap at the version that was seen: what another leader has written since is
/// never overwritten unread (409). Creates it where none was seen. **Source:** seen on 1.37.1: `create` and `patch` of
/// an apply can both be bound to the name.
struct WriteState {
  std::string ns;
  std::string name;
  std::string uid = {};               ///< Of the ConfigMap that was seen; empty: none.
  std::string resource_version = {};  ///< Its version.
  std::string text;
  std::uint64_t revision = 0;  ///< Of the incident store: what is saved when this is accepted.
  std::size_t left_out = 0;    ///< Records that did not fit.
  bool for_charges = false;    ///< Evictions wait for it.
  std::uint64_t term = 0;      ///< In which it was sent: its answer says nothing in a later one.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const WriteState&, const WriteState&) = default;
};

}  // namespace dhc::incident_state
