#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/moment.h"
#include "domain/contract/subject.h"

namespace dhc {

/// A pod that has ended before it ran, because only nodes with our taint would have had it, or the kubelet of one
/// rejected it.
struct LostReplacement {
  Subject owner;  ///< The topmost controller above it.
  std::string pod;
  std::string node;   ///< One that has our taint.
  WallTime made;      ///< By our clock.
  std::string words;  ///< What ended it.
};

/// The pods that one workload has lost so, one after the other.
struct Storm {
  LostReplacement last;
  /// When each round ended, oldest first: the pods of a round are made after one of the round before has ended. Many
  /// pods that are deleted at once are one round, and replacements of replacements are many.
  std::vector<Moment> rounds;
  std::int64_t pods = 0;  ///< In all rounds that are counted.
};

/// Whose replacements are made and lost again and again. Not written down: a new process counts anew.
class LostReplacements {
 public:
  /// So many rounds
  static constexpr std::size_t kStorm = 5;
  /// within so long are a storm. **Source:** kueue#14917: 21 pods in 5 minutes; a Job's back-off lets six through in
  /// that time.
  static constexpr Millis kWithin = std::chrono::minutes(10);
  /// More workloads than these are not followed, but the latest.
  static constexpr std::size_t kMost = 500;

  void note(const std::string& workload, LostReplacement lost, const Now& now);

  /// How many pods have been lost so since the start.
  [[nodiscard]] std::int64_t count() const { return count_; }
  /// By `workload_of`; also those that are no storm, or not any more.
  [[nodiscard]] const std::map<std::string, Storm>& storms() const { return storms_; }

 private:
  std::map<std::string, Storm> storms_;
  std::int64_t count_ = 0;
};

/// Whether a storm stands at `now`.
[[nodiscard]] bool rages(const Storm& storm, const Now& now);

}  // namespace dhc
