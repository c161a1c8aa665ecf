#include "domain/limits/attempt.h"

#include <algorithm>
#include <utility>

#include "domain/limits/altered_rules.h"

namespace dhc {

namespace {

constexpr Millis kLongestPause = std::chrono::minutes(10);

/// `first` doubling with each failure, at most `most`.
Millis doubling(Millis first, Millis most, int failures) {
  Millis wait = first;
  for (int i = 1; i < failures && wait < most; ++i) wait *= 2;
  return std::min(wait, most);
}

/// After what has come to nothing so many times in a row.
Millis vain_pause(int times) { return doubling(kUnseen, kLongestPause, times); }

}  // namespace

void note_sent(Attempt& attempt, std::string seen_version, const Now& now) {
  if (attempt.in_minute == 0 || now.mono - attempt.minute >= kMinute) {
    attempt.minute = now.mono;
    attempt.in_minute = 0;
  }
  ++attempt.in_minute;
  attempt.state = Attempt::State::Sending;
  attempt.at = now.mono;
  attempt.resource_version = std::move(seen_version);
}

void note_stays(Attempt& attempt, bool stands, std::optional<MonoTime> heard_at) {
  if (stands) {
    attempt.in_vain = 0;
  } else if (heard_at && *heard_at >= attempt.at) {
    ++attempt.in_vain;
  }
}

void note_done(Attempt& attempt, const Status& status, const Now& now) {
  attempt.at = now.mono;
  if (status) {
    attempt.state = Attempt::State::Accepted;
    attempt.failures = 0;
    return;
  }
  attempt.state = Attempt::State::Failed;
  attempt.error = status.error();
  attempt.not_before = now.mono;
  if (attempt.error.kind == ErrorKind::Cancelled) {
    // Nothing was written: an order that is taken back turn after turn must not use up its minute.
    attempt.in_minute = std::max(0, attempt.in_minute - 1);
    return;
  }
  ++attempt.failures;
  attempt.not_before += backoff_after(attempt.error, attempt.failures);
}

bool is_in_vain(const Attempt& attempt) {
  constexpr int kNoChance = 2;  // one may not be seen because the next was due before it could be
  return attempt.in_vain >= kNoChance;
}

bool too_often(const Attempt& attempt, const Now& now) {
  return attempt.in_minute >= kWritesAMinute && now.mono - attempt.minute < kMinute;
}

std::optional<MonoTime> again_at(const Attempt& attempt, bool is_taken_away) {
  if (attempt.state == Attempt::State::Sending) return std::nullopt;
  const auto unseen = is_taken_away ? vain_pause(attempt.in_vain) : kUnseen;
  const MonoTime at = attempt.state == Attempt::State::Failed ? attempt.not_before : attempt.at + unseen;
  return attempt.in_minute >= kWritesAMinute ? std::max(at, attempt.minute + kMinute) : at;
}

bool may_stand(const Attempt& attempt) {
  return attempt.state != Attempt::State::Failed || may_have_happened(attempt.error);
}

bool is_under_way(const Attempt* attempt, const Now& now) {
  if (attempt == nullptr || !may_stand(*attempt)) return false;
  return attempt->state != Attempt::State::Failed || now.mono < attempt->not_before;
}

bool may_have_happened(const Error& error) {
  switch (error.kind) {
    case ErrorKind::Doubtful:
    case ErrorKind::Unavailable:
    case ErrorKind::TimedOut:
    case ErrorKind::Altered:
      return true;
    case ErrorKind::NotFound:
    case ErrorKind::Conflict:
    case ErrorKind::Contested:
    case ErrorKind::Gone:
    case ErrorKind::Blocked:
    case ErrorKind::TooManyRequests:
    case ErrorKind::Unauthorized:
    case ErrorKind::Forbidden:
    case ErrorKind::Invalid:
    case ErrorKind::Declined:
    case ErrorKind::Outdated:
    case ErrorKind::Unread:
    case ErrorKind::Cancelled:
    case ErrorKind::Malformed:
      return false;
  }
  return true;
}

Millis eviction_pause(const Error& error, int failures) {
  if (may_have_happened(error) || error.kind == ErrorKind::Outdated) return vain_pause(failures);
  return error.kind == ErrorKind::NotFound ? kLongestPause : Millis::zero();
}

Millis backoff_after(const Error& error, int failures) {
  const auto wish = error.retry_after.value_or(Millis::zero());
  switch (error.kind) {
    case ErrorKind::TimedOut:
      return std::max<Millis>(kUnseen, wish);
    case ErrorKind::NotFound:
    case ErrorKind::Conflict:
    case ErrorKind::Gone:
    case ErrorKind::Outdated:
      return kUnseen;  // or a newer version of the object, whichever comes first
    case ErrorKind::Blocked:
      return std::max(doubling(Seconds(5), Seconds(60), failures), wish);
    case ErrorKind::Unauthorized:
      return doubling(Seconds(2), Seconds(60), failures);
    case ErrorKind::Forbidden:
    case ErrorKind::Invalid:
    case ErrorKind::Contested:
      return doubling(Seconds(60), kLongestPause, failures);
    case ErrorKind::Altered:
      return AlteredRules::kPause;
    case ErrorKind::Declined:
      return std::max(vain_pause(failures), wish);
    case ErrorKind::TooManyRequests:
    case ErrorKind::Doubtful:
    case ErrorKind::Unread:
    case ErrorKind::Unavailable:
    case ErrorKind::Malformed:
      return std::max(doubling(Seconds(1), Seconds(60), failures), wish);
    case ErrorKind::Cancelled:
      return Seconds(1);
  }
  return Seconds(60);
}

}  // namespace dhc
