#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// The pods that one turn evicts, and what they and all others that are going cost their Jobs. A Job's pods are looked
/// at once a turn, however many of them ask.
class LeavingPods {
 public:
  explicit LeavingPods(const PlanInput& input) : input_(input) {}

  /// The pod goes in this turn. False if that was known.
  bool insert(const std::string& uid);
  /// It does not, after all.
  void erase(const std::string& uid);
  [[nodiscard]] bool contains(const std::string& uid) const { return chosen_.contains(uid); }

  /// Pods of a Job whose losses it has not counted yet, because they still run.
  struct Losses {
    std::int64_t going = 0;     ///< By eviction, or as somebody deleted them.
    std::int64_t promised = 0;  ///< They are to go, each with a credit of its own.
  };
  /// Those of the Job's pods but this one.
  [[nodiscard]] Losses of(const JobRecord& record, const std::string& but_uid);

 private:
  [[nodiscard]] Losses of_pod(const std::string& uid, const JobRecord& record) const;
  template <class Change>
  void change(const std::string& uid, const Change& change);

  const PlanInput& input_;
  std::set<std::string> chosen_;
  std::map<std::string, Losses> jobs_;  // of all its pods, by the Job's UID
};

}  // namespace dhc
