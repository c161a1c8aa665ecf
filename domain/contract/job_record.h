#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"

namespace dhc {

/// One retry that a Job got back, for one pod.
struct RetryCredit {
  enum class State : std::uint8_t {
    Given,    ///< Its pod is expected to be lost.
    Spent,    ///< Its pod was lost.
    Unspent,  ///< Its pod ended well, or its device recovered: it pays for the next loss.
  };
  std::string pod_uid;
  std::string pod;
  std::string device;
  WallTime at;             ///< Second precision survives.
  std::int64_t limit = 0;  ///< The backoffLimit that this credit produced.
  State state = State::Given;
  friend bool operator==(const RetryCredit&, const RetryCredit&) = default;
};

/// Every credit of one Job: the annotation `device-health.io/retry-credits`.
struct RetryCredits {
  std::int64_t limit = 0;  ///< The backoffLimit after our last write.
  std::vector<RetryCredit> credits;
  [[nodiscard]] const RetryCredit* find(std::string_view pod_uid) const;
  [[nodiscard]] RetryCredit* find(std::string_view pod_uid);
  [[nodiscard]] bool has_unspent() const;
  friend bool operator==(const RetryCredits&, const RetryCredits&) = default;
};

/// What happened to one pod of a Job that an operator should know: an entry of the annotation
/// `device-health.io/losses`.
struct JobLoss {
  std::string what;  ///< A word of the vocabulary, such as `EvictedPodSucceeded`.
  std::string pod_uid;
  std::string pod;
  std::string device;
  WallTime at;
  friend bool operator==(const JobLoss&, const JobLoss&) = default;
};

/// How many losses a Job's annotation keeps: the newest.
inline constexpr std::size_t kMostLosses = 20;

/// The longest text of either annotation that is read, in bytes; ours are shorter.
inline constexpr std::size_t kLongestRecord = 64UL * 1024;

/// The annotations' texts, and back; nothing if a text is not one that we wrote, as with more losses than we write.
/// JSON, so that people and tools can read it.
[[nodiscard]] std::string format_retry_credits(const RetryCredits& credits);
[[nodiscard]] std::optional<RetryCredits> parse_retry_credits(std::string_view text);
[[nodiscard]] std::string format_losses(const std::vector<JobLoss>& losses);
[[nodiscard]] std::optional<std::vector<JobLoss>> parse_losses(std::string_view text);

}  // namespace dhc
