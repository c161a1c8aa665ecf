#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "domain/cluster/world.h"
#include "domain/incidents/handed_objects.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/news.h"
#include "domain/limits/request_tracker.h"
#include "domain/policy/policy.h"
#include "reconcilers/eviction/action.h"

namespace dhc {

/// What one turn shows of what may be news.
struct BulletinSight {
  const World& world;
  const Policy& policy;
  const IncidentStore& incidents;
  const RequestTracker& requests;
  std::optional<std::uint64_t> saved_revision;  ///< As in PlanInput.
  Now now;
  const HandedObjects* handed = nullptr;  ///< Objects by which nodes were handed over; null: none.
};

/// Finds what is news: incidents that open and close, devices in quarantine, evictions that were accepted, nodes that
/// are handed over and taken back. Part of one leader's term; whoever leads next tells again what became so within the
/// hour, with the same ids: it is kept with the state, and follows as far as it still stands. So an incident is told
/// once it is written down, or could not be for half a minute.
class Bulletin {
 public:
  /// Older facts are told no more: somebody has told them.
  static constexpr Millis kNewsFor = std::chrono::hours(1);
  static constexpr Millis kUnsavedPatience = Seconds(30);

  /// Of what is kept, the newest.
  static constexpr std::size_t kMostKept = 1024;

  /// After a turn's observations. Safe to repeat. Nothing is news without a webhook. True if `kept` has more that is to
  /// be written down.
  [[nodiscard]] bool look(const BulletinSight& sight);

  /// A state was read that knows nothing of what has not been written down: that is forgotten before it is told, and
  /// what the state says of its incidents is news.
  void forget_unwritten();

  /// Takes in what a leader before has kept: it is told again.
  void recall(std::vector<News> news, const Now& now);

  /// What was news within the hour, in the order in which it is told.
  [[nodiscard]] const std::vector<RecentNews>& kept() const { return kept_; }

  /// The API server has accepted this eviction: the pod may be gone before the next look.
  void note_eviction(const eviction::EvictPod& evict, const Policy& policy, const IncidentStore& incidents,
                     const Now& now);

  /// What is to be told, in its order.
  [[nodiscard]] std::vector<News> take() { return std::exchange(ready_, {}); }
  [[nodiscard]] const std::vector<News>& ready() const { return ready_; }

  /// When `look` would find something by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at() const;

 private:
  /// An incident that goes on.
  struct Going {
    WallTime opened_at;  // as the incident is named by
    std::string node;
    std::string policy;
  };
  /// A condition by which a node is handed over.
  struct HandedOver {
    std::string node;
    WallTime at;
  };
  struct Pending {
    News news;
    std::uint64_t revision = 0;  // to be saved before
    MonoTime since;
    std::optional<std::pair<DeviceKey, Going>> closed = {};  // what was told to go on and ends by it
  };

  void look_at_incidents(const BulletinSight& sight);
  void look_at(const DeviceRecord& record, const BulletinSight& sight);
  /// The id of what is told.
  std::string close(const DeviceKey& key, const Going& going, WallTime at, const std::string& why,
                    const BulletinSight& sight);
  void look_at_evictions(const BulletinSight& sight);
  void look_at_nodes(const BulletinSight& sight);
  void look_at_objects(const BulletinSight& sight);
  void add(News news, std::uint64_t revision, const Now& now, std::optional<std::pair<DeviceKey, Going>> closed = {});
  [[nodiscard]] bool keep(const Now& now);
  void flush(const BulletinSight& sight);

  std::map<DeviceKey, Going> going_;
  std::map<std::pair<std::string, std::string>, HandedOver> handed_over_;  // by the node's UID and the condition's type
  std::map<std::string, HandedObject> objects_;                            // that stand, by what they are remembered by
  std::set<std::string> evicted_;                                          // UIDs of pods
  std::map<std::string, MonoTime> told_;                                   // ids, or on their way to be, and since when
  std::vector<RecentNews> kept_;
  std::set<std::string> added_;    // ids of those of them that no leader before has kept, since the last look
  std::set<std::string> follows_;  // ids of those that the incidents that are remembered tell
  bool is_changed_ = true;         // what `kept_` is made of
  std::vector<Pending> pending_;
  std::vector<News> ready_;
  std::optional<std::uint64_t> seen_revision_;
};

}  // namespace dhc
