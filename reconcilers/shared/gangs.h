#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "domain/cluster/gang.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// The most pods that go together: each is charged, and the record of charges has an end.
inline constexpr std::size_t kMostInGang = 256;

/// Whether there is something of the pod to evict: one that no node has holds nothing, and one that is going needs
/// nobody to send it. Null: no.
[[nodiscard]] bool can_be_evicted(const PodRecord* record);

/// The gang of an affected pod whose policy says `evict.groups: Together`.
struct GangUnit {
  Gang gang;
  std::size_t size = 0;  ///< Its pods that a node has and that nobody has deleted.
  /// One for each of these, the asking pod first, the others by UID; empty: they are more than `kMostInGang`. A pod
  /// without a bad device of its own goes with the asking one.
  std::vector<const AffectedPod*> members = {};
};

/// The gangs of one plan: a pod's is found when it is first asked for. What is given out lives as long as this.
class Gangs {
 public:
  explicit Gangs(const PlanInput& input) : input_(input) {}
  Gangs(const Gangs&) = delete;
  Gangs& operator=(const Gangs&) = delete;
  ~Gangs() = default;

  /// Null: the incident is not open, the policy does not say so, or the pod is in no gang. Never of a pod that goes
  /// with another.
  [[nodiscard]] const GangUnit* of(const AffectedPod& affected);

  /// A pod that goes for the device of a gang's charge, under this policy.
  [[nodiscard]] const AffectedPod& member_of_round(const PodRecord& record, const DeviceKey& key,
                                                   const DevicePolicy& policy, Moment since);

 private:
  struct Member {
    HeldDevice held_device;
    AffectedPod affected;
  };
  [[nodiscard]] const AffectedPod* own_of(const std::string& uid, const AffectedPod& asking);
  [[nodiscard]] const AffectedPod* member_for(const PodRecord& record, const AffectedPod& asking);
  [[nodiscard]] AffectedPod& keep(AffectedPod affected);

  const PlanInput& input_;
  std::map<const AffectedPod*, GangUnit> units_;
  std::map<std::string, std::vector<const AffectedPod*>> open_;  // by UID, of policies that say Together
  bool is_indexed_ = false;
  std::deque<Member> members_;  // whose addresses stay
};

/// Those of a unit that hold a bad device of their own.
[[nodiscard]] std::vector<const AffectedPod*> with_bad_devices(const std::vector<const AffectedPod*>& members);

}  // namespace dhc
