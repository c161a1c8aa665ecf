#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/moment.h"
#include "base/string_index.h"
#include "domain/cluster/touched.h"
#include "domain/cluster/world.h"
#include "domain/history/device_record.h"
#include "domain/history/owner_loss.h"
#include "domain/limits/altered_rules.h"
#include "domain/limits/attempt.h"
#include "domain/limits/condition_attempt.h"
#include "domain/limits/notice_book.h"
#include "domain/limits/owner_reads.h"
#include "domain/limits/token_bucket.h"

namespace dhc {

struct EvictionCharge;

/// One pod that we evict or have evicted.
struct EvictionAttempt : Attempt {
  DeviceKey key;
  /// `key`, or every device that an ambiguous one may be; none of a pod that went with another of its gang.
  std::vector<DeviceKey> lost_to;
  std::string owner;                 ///< The identity of the pod's controller; empty: it has none.
  std::string loser;                 ///< As `loss_owner` says.
  std::string shared_claim;          ///< UID of the claim that the pod shares with the other holders; empty: its own.
  std::vector<std::string> holders;  ///< UIDs of the pods that were on its card then: none of them is the replacement.
  MonoTime tried_at = MonoTime::min();    ///< When the server last answered, or did not; the minimum: not tried yet.
  bool in_doubt = false;                  ///< One of the attempts may have happened.
  MonoTime doubted_at = MonoTime::min();  ///< When the answer to the last of those was given up, or came.
  bool shown = false;                     ///< The World has shown the pod terminating.
  /// Until when an answer that never came holds the pod's slot. Set by the first one: the slot is held once, not again
  /// with every attempt.
  std::optional<MonoTime> doubted_until = {};
};

/// What is asked of an object, where the same again means that it did not stay; empty words: nothing follows from that.
struct Asks {
  std::string words{};
  std::optional<MonoTime> heard_at{};  ///< The last word of the watch of such objects.
  bool begins = false;                 ///< Of what was not there before, by what is known.
};

/// Any other write to one object.
struct WriteAttempt : Attempt {
  std::string asks;     ///< As in Asks.
  bool begins = false;  ///< Likewise.
};

/// Whether an attempt whose answer was lost may still explain what becomes of the pod: a pod that stood for an hour
/// after it goes for another reason. What was recalled or refused later takes no doubt away.
[[nodiscard]] bool is_in_doubt(const EvictionAttempt* attempt, const Now& now);

/// Whether any of the attempts on the pod has happened, is on its way, or is in doubt; false without an attempt.
[[nodiscard]] bool may_stand(const EvictionAttempt* attempt, const Now& now);

/// Whether the pod was gone before anything was sent: by its deletion, or by an eviction of the process before us.
[[nodiscard]] bool came_too_late(const EvictionAttempt& attempt);

/// What has been asked of the API server and is not settled: in flight, failed, not before when. What must outlive a
/// restart is written in the cluster, and learned from it.
class RequestTracker {
 public:
  // Evictions, by pod UID.
  /// `holds` is false of a pod that goes with another of its gang: its owner loses it to no device.
  void eviction_sent(const k8s::Pod& pod, const HeldDevice& held_device, std::vector<std::string> holders,
                     const Now& now, bool holds = true);
  /// `seen_version` is the pod's as the World shows it now: only a newer one is news about a call whose answer never
  /// came.
  void eviction_done(const std::string& pod_uid, const Status& status, const std::string& seen_version, const Now& now);
  [[nodiscard]] const EvictionAttempt* eviction(const std::string& pod_uid) const;
  /// When a pod of this namespace was last sent for eviction; the beginning of time: not within the hour.
  [[nodiscard]] MonoTime served_at(std::string_view ns) const;
  [[nodiscard]] const StringIndex<EvictionAttempt>& evictions() const { return evictions_; }

  /// True if the pod's owner lost a pod to this device, to another as which a device plugin offers its card, or to any
  /// that an ambiguous one may be, to us within the hour, and this pod came after it (invariant I15).
  [[nodiscard]] bool lost_recently(const k8s::Pod& pod, const HeldDevice& held_device, const Now& now) const;
  [[nodiscard]] const OwnerLosses& losses() const { return losses_; }
  /// Takes in what a process before us has written down.
  void recall_losses(const DeviceRecords& records, const Now& now);

  /// The holders of this shared claim were sent for eviction together, one of them is on its way, gone, or may be, and
  /// the claim has not been deallocated since. Not if all were refused or taken back before they were sent.
  [[nodiscard]] bool was_emptied(const std::string& claim_uid) const { return emptied_claims_.contains(claim_uid); }

  // Conditions, by pod UID.
  void condition_sent(const k8s::Pod& pod, PodWords said, std::optional<MonoTime> heard_at, const Now& now);
  void condition_done(const std::string& pod_uid, const Status& status, const Now& now);
  /// When this process began to act; none: it has not.
  [[nodiscard]] const std::optional<Moment>& began_at() const { return began_at_; }
  [[nodiscard]] const ConditionAttempt* condition(const std::string& pod_uid) const;
  /// True if a condition may be sent for this pod: nothing is under way, no back-off holds, the World has shown the
  /// last one, and it was not taken away just now.
  [[nodiscard]] bool may_send_condition(const k8s::Pod& pod, const PodWords& wanted, const Now& now) const;

  /// When time alone would allow it again; none: it may be sent now, or time does not help.
  [[nodiscard]] std::optional<MonoTime> may_send_condition_at(const k8s::Pod& pod, const PodWords& wanted) const;

  /// What pods were told, or are about to see.
  [[nodiscard]] NoticeBook& notices() { return notices_; }
  [[nodiscard]] const NoticeBook& notices() const { return notices_; }
  /// The condition was refused because of the annotation beside it: it may be sent without at once.
  void condition_refused_for_notice(const k8s::Pod& pod, const Now& now);
  /// An apply without a notice was accepted: what the pod still shows then is not ours.
  void notice_taken_back(const k8s::Pod& pod);

  // Events, by their deterministic names.
  void event_sent(const std::string& name, const Now& now);
  void event_done(const std::string& name, const Status& status, const Now& now);
  [[nodiscard]] bool may_send_event(const std::string& name, const Now& now) const;

  // Every other write, by a key of write_keys.h. `seen_version` is the object's
  // resourceVersion as the World shows it; empty: it does not exist.
  void write_sent(const std::string& key, const std::string& seen_version, const Now& now, Asks asks = {});
  void write_done(const std::string& key, const Status& status, const Now& now);
  [[nodiscard]] const WriteAttempt* write(const std::string& key) const;
  /// True if nothing is under way, no back-off holds, and the World has shown what was last written (or 30 s are over;
  /// ten minutes in the end, where just this is taken away each time).
  [[nodiscard]] bool may_write(const std::string& key, const std::string& seen_version, const Now& now,
                               std::string_view asks = {}) const;
  /// Whether just this was accepted again and again, and was not there when the next was due.
  [[nodiscard]] bool is_taken_away(const std::string& key, std::string_view asks) const;
  /// Whether anything that was asked for is about this object: then a newer version of it is news, whatever it says.
  [[nodiscard]] bool waits_for(const k8s::Object& object) const;
  /// When time alone would allow it again; none: it may be done now, or time does not help.
  [[nodiscard]] std::optional<MonoTime> may_write_at(const std::string& key, std::string_view asks = {}) const;

  /// Rules that were stored otherwise than we sent them.
  [[nodiscard]] AlteredRules& altered_rules() { return altered_rules_; }
  [[nodiscard]] const AlteredRules& altered_rules() const { return altered_rules_; }

  /// Of evictions.
  [[nodiscard]] TokenBucket& tokens() { return tokens_; }
  [[nodiscard]] const TokenBucket& tokens() const { return tokens_; }

  /// Of attempts to evict, which a refusal uses up although it evicts nobody.
  [[nodiscard]] TokenBucket& attempt_tokens() { return attempt_tokens_; }
  [[nodiscard]] const TokenBucket& attempt_tokens() const { return attempt_tokens_; }

  /// Of new taints.
  [[nodiscard]] TokenBucket& taint_tokens() { return taint_tokens_; }
  [[nodiscard]] const TokenBucket& taint_tokens() const { return taint_tokens_; }

  /// Of writes to conditions of nodes.
  [[nodiscard]] TokenBucket& hand_over_tokens() { return hand_over_tokens_; }
  [[nodiscard]] const TokenBucket& hand_over_tokens() const { return hand_over_tokens_; }

  /// Of bytes of the state, which is written whole.
  [[nodiscard]] TokenBucket& state_bytes() { return state_bytes_; }
  [[nodiscard]] const TokenBucket& state_bytes() const { return state_bytes_; }

  [[nodiscard]] OwnerReads& owner_reads() { return owner_reads_; }
  [[nodiscard]] const OwnerReads& owner_reads() const { return owner_reads_; }

  /// Reads in the World what became of evictions whose answer we never had, also those of the process before us.
  /// `charges`: the evictions that were written down before they were sent, by pod UID.
  void learn(const World& world, const std::map<std::string, EvictionCharge>& charges, const Now& now);

  /// What has changed since the last call, but for writes and Events: who sends them and hears of them knows about what
  /// they are. An Event that may be sent again touches all.
  [[nodiscard]] Touched take_touched() { return std::exchange(touched_, {}); }

  /// Forgets attempts on pods that are gone, claims that were deallocated, and losses and Events older than an hour.
  void forget(const World& world, const Now& now);

 private:
  void touch(const std::string& pod_uid, const EvictionAttempt& attempt);
  void note_loss(const EvictionAttempt& attempt, const Now& now);
  void learn_lost(const World& world, const std::map<std::string, EvictionCharge>& charges, const Now& now);
  [[nodiscard]] bool was_ours(const PodRecord& record, const HeldDevice& held_device,
                              const EvictionCharge* charge) const;
  void note_shown(EvictionAttempt& attempt, const k8s::Pod& pod, const World& world, const Now& now);
  static void note_tried(EvictionAttempt& attempt, bool may_be_evicted, const Now& now);
  void note_holder_sent(const std::string& pod_uid, const EvictionAttempt& attempt);
  void note_holder_done(const std::string& pod_uid, const EvictionAttempt& attempt, bool may_be_evicted);

  /// A shared claim whose holders are evicted together.
  struct EmptiedClaim {
    std::set<std::string> on_their_way;  // UIDs of holders
    bool begun = false;                  // one of them is gone, or may be
  };

  StringIndex<EvictionAttempt> evictions_;
  std::map<std::string, MonoTime, std::less<>> served_;  // by namespace
  StringIndex<ConditionAttempt> conditions_;
  NoticeBook notices_;
  std::map<std::string, Attempt, std::less<>> events_;
  std::map<std::string, WriteAttempt, std::less<>> writes_;
  AlteredRules altered_rules_;
  OwnerLosses losses_;
  std::optional<Moment> began_at_;                      // when these attempts began
  std::map<std::string, EmptiedClaim> emptied_claims_;  // by UID
  TokenBucket tokens_;
  TokenBucket attempt_tokens_;
  TokenBucket taint_tokens_{TokenBucket::Start::Full};
  TokenBucket hand_over_tokens_{TokenBucket::Start::Full};
  TokenBucket state_bytes_;
  OwnerReads owner_reads_;
  std::map<std::string, MonoTime> events_again_;  // those that have failed, and when they may be sent again
  Touched touched_;
};

}  // namespace dhc
