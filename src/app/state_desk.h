#pragma once
#include <optional>

#include "base/now.h"
#include "domain/device_memory.h"
#include "domain/world.h"
#include "k8s-client/protocol/delivery.h"
#include "reconcilers/memory/plan.h"

namespace dhc {

/// The state ConfigMap's way into the memory: seen, loaded once a term, waited for at most 30 s, forgotten when a
/// person deletes it.
class StateDesk {
 public:
  /// What the watch of ConfigMaps says; other kinds are ignored. True if the memory has been loaded anew.
  [[nodiscard]] bool take(const k8s::Delivery& delivery, DeviceMemory& memory, const Now& now);

  /// A new term begins: what we remember from an earlier one is older than what another leader may have written since.
  /// True if the memory has been loaded anew.
  [[nodiscard]] bool begin_term(DeviceMemory& memory, const Now& now);

  /// Until when the state is waited for; none: it is there, no longer waited for, or there is none (`own_namespace`
  /// is empty).
  [[nodiscard]] std::optional<MonoTime> waits(const std::string& own_namespace, const Now& now);

  /// We have written something: the words of the leader before us no longer count.
  void note_written() { has_written_ = true; }

  void note_saved(const memory::WriteState& written, const Now& now);

  [[nodiscard]] const memory::StateFile& file() const { return file_; }

 private:
  [[nodiscard]] bool see(std::optional<k8s::ConfigMap> map, DeviceMemory& memory, const Now& now);
  void load(DeviceMemory& memory, const Now& now);

  memory::StateFile file_;
  bool is_listed_ = false;              // whether it exists is known
  std::optional<k8s::ConfigMap> seen_;  // as it was last seen
  bool is_loaded_ = false;
  std::optional<MonoTime> awaited_since_;
  bool has_written_ = false;  // in this term
};

}  // namespace dhc
