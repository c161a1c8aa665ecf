#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/now.h"

namespace dhc {

/// What has been tried for one subject.
struct Attempt {
  enum class State : std::uint8_t { Sending, Accepted, Failed };
  State state = State::Sending;
  MonoTime at;          ///< Sent, accepted or failed.
  MonoTime first_at;    ///< Sent for the first time.
  MonoTime not_before;  ///< When the next attempt may be made.
  int failures = 0;
  std::string resource_version;  ///< The object's when it was sent: a newer one shows that the World has moved on.
  Error error;                   ///< Of the last failure.
  MonoTime minute;               ///< When the present minute of writes began,
  int in_minute = 0;             ///< and how many were sent in it.
  int in_vain = 0;               ///< Times in a row that it was accepted and had to be asked for again.
};

// Two writers who each put their own word back would write without end: ours then waits for the next minute.
inline constexpr int kWritesAMinute = 6;
inline constexpr Millis kMinute = Seconds(60);

/// How long we wait for the World to show what was done.
inline constexpr Millis kUnseen = Seconds(30);

/// It is on its way, at the object's version that the World shows.
void note_sent(Attempt& attempt, std::string seen_version, const Now& now);

/// Before what was accepted is asked for again: whether it stands. A watch that has not been heard since, by its last
/// word `heard_at`, says nothing about that.
void note_stays(Attempt& attempt, bool stands, std::optional<MonoTime> heard_at);

/// Its answer came. A request that was never sent (Cancelled) is decided anew at once; other errors back off.
void note_done(Attempt& attempt, const Status& status, const Now& now);

/// It was accepted again and again, and was not there when the next was due.
[[nodiscard]] bool is_in_vain(const Attempt& attempt);

/// True if this minute has had its writes.
[[nodiscard]] bool too_often(const Attempt& attempt, const Now& now);

/// When time alone would allow the next one; none: its answer is awaited. What is taken away each time is written ever
/// more rarely, every ten minutes in the end.
[[nodiscard]] std::optional<MonoTime> again_at(const Attempt& attempt, bool is_taken_away = false);

/// Whether a call that ended so may have been carried out.
[[nodiscard]] bool may_have_happened(const Error& error);

/// Whether it has happened, is on its way, or may have happened, however long ago.
[[nodiscard]] bool may_stand(const Attempt& attempt);

/// The same, a doubt only until the next attempt may be made; false without an attempt.
[[nodiscard]] bool is_under_way(const Attempt* attempt, const Now& now);

/// How long a pod whose eviction failed so is left alone at least. What may have happened is not repeated before the
/// World has had time to show it, and is repeated ever more rarely; a pod that has gone is not asked for again.
[[nodiscard]] Millis eviction_pause(const Error& error, int failures);

/// How long a failed request waits, by its remedy and the number of failures in a row.
[[nodiscard]] Millis backoff_after(const Error& error, int failures);

}  // namespace dhc
