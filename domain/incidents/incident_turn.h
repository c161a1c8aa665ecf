#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "domain/findings/rejecting_node.h"
#include "domain/incidents/incident_store.h"

namespace dhc {

/// One observation of the incident store: opens, continues and ends incidents.
class IncidentTurn {
 public:
  IncidentTurn(IncidentStore& incidents, const DeviceSighting& seen)
      : incidents_(incidents), seen_(seen), now_(seen.now) {}

  void run();

 private:
  void changed() { ++incidents_.revision_; }
  /// Changes a member, and remembers that there is something to write.
  template <class T, class U>
  void set(T& member, U&& value) {
    if (member == value) return;
    member = std::forward<U>(value);
    changed();
  }
  [[nodiscard]] bool looks_at_all() const { return seen_.focus == nullptr || seen_.focus->all; }
  void wake(WallTime at);
  /// The records in focus, or all.
  template <class Look>
  void for_each_record(const Look& look);

  void conclude();

  // what is new
  void collect_affected();
  void collect(const AffectedPod& affected);
  void note_losses();
  void adopt_rules();
  void adopt_nodes();
  void adopt(const std::string& node);
  [[nodiscard]] std::set<std::string> nodes_with_our_taint() const;
  void believe();
  void believe(const DeviceKey& key);
  void open_or_continue(const DeviceKey& key, const AffectedPod& affected);
  /// What begins an incident.
  struct Onset {
    const DevicePolicy& policy;
    WallTime since;
    SignalSource source = SignalSource::Report;
    k8s::Taint taint = {};
    std::string said;
  };
  [[nodiscard]] bool is_with_suspects(const DeviceKey& key) const;
  [[nodiscard]] std::optional<WallTime> probation_of(const DeviceKey& key) const;
  /// What the other devices of a card that a device plugin offers several times say of it.
  struct Replicas {
    bool is_broken = false;      ///< An incident of one goes on.
    bool is_same_break = false;  ///< As `is_same_break` says of one.
  };
  Replicas take_past_of_replicas(DeviceRecord& record);
  void open_rejecting(const DeviceKey& key, const RejectingNode& rejecting);
  void begin(DeviceRecord& record, const Onset& onset);
  void judge_card(DeviceRecord& record, const Onset& onset);
  void choose_policy(DeviceRecord& record, const AffectedPod& affected);
  [[nodiscard]] DeviceRecord take_history(const DeviceKey& key, const DeviceIdentity& identity);

  // what goes on and ends
  void look_at(DeviceRecord& record);
  void look_at_trial(DeviceRecord& record);
  void await_word(const DeviceRecord& record);
  void pay_card(const DeviceRecord& record, WallTime vouched_until);
  void look_at_policy(DeviceRecord& record);
  void remove_rule(OurMarks& ours);
  void hear(IncidentFacts& facts, EvidenceEvent event);
  void look_at_host(DeviceRecord& record);
  void look_at_identity(DeviceRecord& record);
  void look_at_reporter(DeviceRecord& record);
  void look_at_informer(DeviceRecord& record);
  void look_at_boot(DeviceRecord& record);
  void note_start(ReporterSeen& seen, const Reporter& reporter);
  void forget_healthy(DeviceRecord& record);
  void note_called_bad(DeviceRecord& record, const Moment& word);
  void look_at_evidence(DeviceRecord& record);
  void look_at_driver_taint(const DeviceKey& key, IncidentFacts& facts);
  void look_at_cure(const DeviceRecord& record, ReporterSeen& reporter);
  void look_at_admission(const DeviceKey& key, IncidentFacts& facts);
  void look_at_presence(DeviceRecord& record);
  void repair_times(DeviceRecord& record);
  void close(DeviceRecord& record, const Recovery& recovery);
  [[nodiscard]] bool is_other_card(const DeviceRecord& record) const;
  [[nodiscard]] bool is_other_host(DeviceRecord& record);
  void retire(DeviceRecord& record);
  void leave_host(const DeviceRecord& record);
  void depart(DeviceRecord old);
  void start_clean(const DeviceRecord& old, DeviceRecord fresh, std::string why);
  void settle_untainting();
  void forget();
  [[nodiscard]] bool bound_departed();

  IncidentStore& incidents_;
  const DeviceSighting& seen_;
  const Now& now_;
  std::set<DeviceKey> affected_devices_;  // in a state that some policy names, or Unknown in such an incident
  std::set<DeviceKey> called_bad_;        // of them, those that are not just Unknown
  std::set<DeviceKey> forgotten_;         // of them, those whose driver has begun anew, or come back without a word
  std::set<DeviceKey> tainted_;           // by their drivers, in words that some policy names
  std::map<DeviceKey, const AffectedPod*> speaking_;
  std::set<DeviceKey> paid_;  // with another device of their card
  std::vector<DeviceRecord> replaced_;
  std::vector<DeviceRecord> rehosted_;
  const DeviceKey* looks_at_ = nullptr;  // whose wake it is
};

template <class Look>
void IncidentTurn::for_each_record(const Look& look) {
  for_each_in(seen_.focus, incidents_.records_, [&](const DeviceKey& key, DeviceRecord& record) {
    looks_at_ = &key;
    look(key, record);
  });
  looks_at_ = nullptr;
}

}  // namespace dhc
