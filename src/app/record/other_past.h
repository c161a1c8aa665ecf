#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/message.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc::record {

/// The cluster of a recording as it would have been if others had decided: what the recorded controller wrote into it
/// is taken out of every object, and what the new one writes is put in. The lives of pods are as recorded, but for
/// those that one of the two evicts: one that the new one evicts ends when its grace period is over, and one that only
/// the recorded one has evicted goes on, until its device is given to another pod.
class OtherPast {
 public:
  /// What the new controller is to see of it; appended to `out`.
  void deliver(k8s::Delivery&& recorded, std::vector<k8s::Delivery>& out);

  /// The recorded controller's eviction of the pod was accepted.
  void evicted_then(const std::string& uid);
  /// Its patch of the Job was accepted, and raised the limit by so much.
  void credited_then(const std::string& uid, std::int64_t by);

  /// The new controller's action is done; what follows of it is appended.
  void show(const Action& action, const Now& now, std::vector<k8s::Delivery>& out);
  /// Pods whose grace period is over by now; appended.
  void pass(const Now& now, std::vector<k8s::Delivery>& out);
  [[nodiscard]] std::optional<MonoTime> next_end() const;

 private:
  struct Written {
    std::optional<k8s::Condition> condition;
    std::string notice;
  };
  struct Credit {
    std::int64_t by = 0;
    k8s::StringMap notes;
  };

  [[nodiscard]] bool transform(k8s::Object& object, std::vector<k8s::Delivery>& out);
  [[nodiscard]] bool transform(k8s::Pod& pod, std::vector<k8s::Delivery>& out);
  void transform(k8s::Node& node);
  void transform(k8s::Job& job);
  void add_credits(k8s::Job& job) const;
  void put(k8s::Object object, std::vector<k8s::Delivery>& out);
  void end_pod(const std::string& uid, std::vector<k8s::Delivery>& out);
  void make_room(const k8s::Pod& pod, std::vector<k8s::Delivery>& out);
  void list(k8s::Snapshot&& list, std::vector<k8s::Delivery>& out);
  [[nodiscard]] k8s::Pod shown(const k8s::Pod& pod) const;

  std::int64_t version_ = 0;
  bool has_state_ = false;                     // what was remembered when the recording began
  std::map<std::string, k8s::Pod> pods_;       // that hold devices, as recorded, without the recorded one's marks
  std::map<std::string, Written> written_;     // by the new one, on pods
  std::map<std::string, MonoTime> ending_;     // pods that the new one evicts, until they are gone
  std::map<std::string, k8s::Pod> going_;      // how those are shown
  std::set<std::string> ended_;                // and those that are gone
  std::set<std::string> frozen_;               // that only the recorded one has evicted
  std::map<std::string, std::string> claims_;  // UIDs of claims to those of the pods that own them
  std::map<std::string, k8s::Node> nodes_;     // by name, as recorded
  std::set<std::string> tainted_;              // by the new one
  std::map<std::string, k8s::Job> jobs_;       // by UID, as recorded
  std::map<std::string, std::int64_t> credited_then_;
  std::map<std::string, Credit> credits_;              // of the new one
  std::map<std::string, k8s::DeviceTaintRule> rules_;  // of the new one, by name
  std::set<std::string> their_rules_;                  // of the recorded one, by UID
};

}  // namespace dhc::record
