// The half of WatchMachine that recovers: what an ending means, and what the table's words do.
#include <algorithm>
#include <utility>

#include "k8s-client/protocol/watch_machine.h"

namespace dhc::k8s {
namespace {

constexpr Millis kShortLife = Seconds(5);
constexpr Millis kAskAgain = std::chrono::minutes(5);
constexpr std::size_t kUnfinishedAfter = 2;
constexpr std::size_t kAbsentRounds = 3;
constexpr std::size_t kSilentAfter = 2;
/// A stream that timed out sooner was never open: no connection in time, or a 504.
constexpr Millis kSilence = std::chrono::minutes(1);
constexpr Millis kBetweenBacks = std::chrono::minutes(1);

}  // namespace

WatchMachine::Ended WatchMachine::reason_of(const std::optional<Error>& error, const Now& now) {
  auto why = pending_ ? std::move(*pending_)
                      : Ended{.ending = error ? ending_of(error->kind) : WatchEnding::Closed, .error = error};
  pending_.reset();
  const bool in_order = why.ending == WatchEnding::Closed;
  if (phase_ == WatchPhase::Initial && (in_order || why.ending == WatchEnding::TimedOut) &&
      ++unfinished_ >= kUnfinishedAfter) {
    why.ending = WatchEnding::Unfinished;
  }
  const bool unread =
      why.ending == WatchEnding::Malformed || (phase_ == WatchPhase::Listing && why.ending == WatchEnding::Invalid);
  if (unread && asks_protobuf(target_, api_version_)) why.ending = WatchEnding::OtherFormat;
  const bool silent = phase_ == WatchPhase::Watching && why.ending == WatchEnding::TimedOut;
  if (silent && now.mono - started_at_ >= kSilence && ++silent_ >= kSilentAfter) why.ending = WatchEnding::Silent;
  // A good moment for the list that we need anyway.
  if (phase_ == WatchPhase::Watching && in_order && unnamed_since_) why.ending = WatchEnding::Unnamed;
  return why;
}

void WatchMachine::ended(const std::optional<Error>& error, const Now& now, double chance, Out out) {
  if (stopped_ || (!asked_ && !(error && error->kind == ErrorKind::Cancelled))) return;
  asked_ = false;
  const auto why = reason_of(error, now);
  ++status_.endings[static_cast<std::size_t>(why.ending)];
  if (why.error) status_.last_error = why.error;
  forbidden_ = why.ending == WatchEnding::Forbidden;
  if (why.ending == WatchEnding::WentBack) status_.behind = true;
  // Between two streams anything may happen, a restore of the server's data too: until a check or a list is over.
  if (phase_ == WatchPhase::Watching) tell(WatchWord::Doubted, now, out);
  auto wait = follow(remedy_of(phase_, why.ending), now, chance, out);
  if (why.error && why.error->retry_after)
    wait += std::clamp(*why.error->retry_after, Millis::zero(), Millis(kAskAgain));
  if (wait > Millis::zero()) wait_until_ = now.mono + wait;
}

Millis WatchMachine::follow(WatchRemedy remedy, const Now& now, double chance, Out out) {
  const auto wait = wait_of(remedy.pace, now, chance);
  switch (remedy.then) {
    case WatchThen::Again:
      // Half a WatchList is worth nothing, half the pages are.
      if (phase_ == WatchPhase::Initial) begin_sync(not_older_.empty());
      if (phase_ == WatchPhase::Watching) phase_ = WatchPhase::Checking;
      return wait;
    case WatchThen::Relist:
      begin_sync(false);
      return wait;
    case WatchThen::PagedList:
      watch_list_ = false;
      begin_sync(true);
      return wait;
    case WatchThen::RelistFresh:
      begin_sync(true);
      return wait;
    case WatchThen::AskJson:
      target_.wire = WireFormat::Json;
      watch_list_ = true;
      begin_sync(true);
      return wait;
    case WatchThen::OtherVersion:
      return other_version(now, chance, out);
    case WatchThen::Stop:
      stopped_ = true;
      return Millis::zero();
  }
  return wait;
}

/// 404: tries the kind's API versions in turn; a round that finds none means that the kind is not served. What we have
/// had before is not given up for one such round: servers that start, and proxies, say 404 too.
Millis WatchMachine::other_version(const Now& now, double chance, Out out) {
  const auto count = version_count(target_.kind);
  api_version_ = (api_version_ + 1) % count;
  if (++versions_absent_ < count) {
    begin_sync(true);
    return Millis::zero();
  }
  versions_absent_ = 0;
  ++rounds_absent_;
  const bool had = status_.synced && served_;
  if (!may_be_absent(target_.kind) || (had && rounds_absent_ < kAbsentRounds)) {
    return wait_of(WatchPace::Slow, now, chance);
  }
  if (!status_.synced || served_) out.emplace_back(Snapshot{.kind = target_.kind, .objects = {}, .served = false});
  status_.synced = true;
  served_ = false;
  api_version_ = 0;
  version_.clear();
  newest_.clear();
  status_.behind = false;
  begin_sync(true);
  return kAskAgain;
}

Millis WatchMachine::wait_of(WatchPace pace, const Now& now, double chance) {
  switch (pace) {
    case WatchPace::AtOnce:
      return Millis::zero();
    case WatchPace::Prompt:
      return now.mono - started_at_ >= kShortLife ? Millis::zero() : trouble_.next(now.mono, chance);
    case WatchPace::BackOff:
      return trouble_.next(now.mono, chance);
    case WatchPace::Relist:
      return relist_.next(now.mono, chance);
    case WatchPace::Slow:
      return slow_.next(now.mono, chance);
    case WatchPace::Minute: {
      const auto at = back_at_ ? std::max(*back_at_ + kBetweenBacks, now.mono) : now.mono;
      back_at_ = at;
      return at - now.mono;
    }
  }
  return trouble_.next(now.mono, chance);
}

void WatchMachine::begin_sync(bool fresh) {
  const bool followed = phase_ == WatchPhase::Watching || phase_ == WatchPhase::Checking;
  if (status_.synced && served_ && followed) ++status_.relists;
  phase_ = watch_list_ ? WatchPhase::Initial : WatchPhase::Listing;
  not_older_ = fresh ? std::string() : version_;
  continue_.clear();
  objects_.clear();
  bad_.clear();
}

void WatchMachine::doubt(std::string why, const Now& now, Out out) {
  const bool followed = phase_ == WatchPhase::Watching || phase_ == WatchPhase::Checking;
  if (stopped_ || !status_.synced || !served_ || !followed || status_.behind) return;
  ++status_.went_back;
  status_.went_back_how = std::move(why);
  (void)end_stream(WatchEnding::WentBack, std::nullopt);
  if (std::exchange(asked_, true)) return;
  ended(std::nullopt, now, 0, out);  // between two requests: as if one had ended so
}

void WatchMachine::list_afresh(const Now& now, Out out) {
  const bool followed = phase_ == WatchPhase::Watching || phase_ == WatchPhase::Checking;
  if (stopped_ || !status_.synced || !served_ || !followed || status_.behind) return;
  (void)end_stream(WatchEnding::Asked, std::nullopt);
  if (std::exchange(asked_, true)) return;
  ended(std::nullopt, now, 0, out);  // as above
}

}  // namespace dhc::k8s
