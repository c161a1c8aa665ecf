#include "k8s-client/protocol/watch_machine.h"

#include <algorithm>
#include <utility>

#include "k8s-client/protocol/api_error.h"

namespace dhc::k8s {
namespace {

constexpr Millis kShortLife = Seconds(5);
constexpr Millis kAskAgain = std::chrono::minutes(5);
constexpr Millis kMarkerOverdue = std::chrono::minutes(1);
constexpr Millis kUnnamedPatience = std::chrono::minutes(1);
constexpr std::size_t kUnnamedInARow = 10;
constexpr std::size_t kStuckAfter = 3;
constexpr std::size_t kUnfinishedAfter = 2;
constexpr std::size_t kAbsentRounds = 3;
constexpr BackoffLimits kSlow = {
    .first = Seconds(5), .cap = Seconds(60), .floor = Seconds(1), .forgets_after = std::chrono::minutes(10)};

std::string key_of(std::string_view ns, std::string_view name) {
  std::string key(ns);
  key += '/';
  key += name;
  return key;
}

/// "0" means "anything you have, however old" to the API, and empty "from now on": neither is a place to go on from.
bool is_place(std::string_view version) { return !version.empty() && version != "0"; }

Unreadable unreadable(Kind kind, BadObject bad) {
  return {.kind = kind,
          .ns = std::move(bad.ns),
          .name = std::move(bad.name),
          .uid = std::move(bad.uid),
          .why = std::move(bad.why)};
}

Error malformed(std::string message) {
  return {.kind = ErrorKind::Malformed, .message = std::move(message), .retry_after = std::nullopt};
}

}  // namespace

WatchMachine::WatchMachine(WatchTarget target) : target_(std::move(target)), slow_(kSlow) {
  status_.kind = target_.kind;
}

WatchStep WatchMachine::next(const Now& now, double chance) {
  if (stopped_) return StopWatching{};
  if (wait_until_ && *wait_until_ > now.mono) return WaitFor{*wait_until_ - now.mono};
  wait_until_.reset();
  pending_.reset();
  unnamed_in_a_row_ = 0;
  started_at_ = now.mono;
  asked_ = true;
  switch (phase_) {
    case WatchPhase::Listing:
      return SendList{build_list(target_, api_version_, continue_)};
    case WatchPhase::Initial:
      return OpenStream{build_watch_list(target_, api_version_, not_older_, chance)};
    case WatchPhase::Watching:
      return OpenStream{build_watch(target_, api_version_, version_, chance)};
  }
  return StopWatching{};
}

/// Somebody who serves this kind answered.
void WatchMachine::heard(const Now& now) {
  status_.last_event_at = now.mono;
  forbidden_ = false;
  versions_absent_ = 0;
  rounds_absent_ = 0;
  stuck_ = 0;
  slow_.reset();
}

void WatchMachine::page(ListPage page, const Now& now, double chance, Out out) {
  if (!asked_ || phase_ != WatchPhase::Listing) return;
  const bool last = page.continue_token.empty();
  if (last ? !is_place(page.resource_version) : page.continue_token == continue_) {
    return ended(malformed(last ? "a list without a version" : "a list whose pages do not go on"), now, chance, out);
  }
  heard(now);
  status_.events += page.objects.size() + page.bad.size();
  status_.bad_objects += page.bad.size();
  for (auto& object : page.objects) keep(std::move(object));
  for (auto& bad : page.bad) {
    if (!bad.name.empty()) bad_.insert_or_assign(key_of(bad.ns, bad.name), std::move(bad));
  }
  asked_ = false;
  continue_ = std::move(page.continue_token);
  if (last) finish_sync(std::move(page.resource_version), out);
}

bool WatchMachine::event(WatchEvent event, const Now& now, Out out) {
  if (!asked_ || pending_ || phase_ == WatchPhase::Listing) return false;
  ++status_.events;
  if (const auto* const error = std::get_if<ErrorStatus>(&event.what)) return error_event(*error);
  if (const auto* const bad = std::get_if<BadObject>(&event.what); bad != nullptr && bad->uid.empty()) {
    if (!bad_line(*bad)) return false;
  } else {
    unnamed_in_a_row_ = 0;
    heard(now);
  }
  return phase_ == WatchPhase::Initial ? initial(std::move(event), now, out) : live(std::move(event), now, out);
}

bool WatchMachine::initial(WatchEvent event, const Now& now, Out out) {
  if (auto* const changed = std::get_if<Changed>(&event.what)) {
    keep(std::move(changed->object));
  } else if (const auto* const deleted = std::get_if<Deleted>(&event.what)) {
    objects_.erase(key_of(deleted->ns, deleted->name));
    bad_.erase(key_of(deleted->ns, deleted->name));
  } else if (auto* const bad = std::get_if<BadObject>(&event.what)) {
    ++status_.bad_objects;
    if (!bad->name.empty()) bad_.insert_or_assign(key_of(bad->ns, bad->name), std::move(*bad));
  } else if (const auto* const mark = std::get_if<Bookmark>(&event.what)) {
    if (!mark->initial_events_end) {
      return now.mono - started_at_ < kMarkerOverdue || end_stream(WatchEnding::Closed, std::nullopt);
    }
    if (!is_place(event.resource_version)) {
      return end_stream(WatchEnding::Malformed, malformed("the end of the initial events has no version"));
    }
    finish_sync(std::move(event.resource_version), out);
  }
  return true;
}

bool WatchMachine::live(WatchEvent event, const Now& now, Out out) {
  if (is_place(event.resource_version)) version_ = std::move(event.resource_version);
  if (auto* const changed = std::get_if<Changed>(&event.what)) {
    out.emplace_back(Upsert{std::move(changed->object)});
  } else if (auto* const deleted = std::get_if<Deleted>(&event.what)) {
    out.emplace_back(Remove{.kind = target_.kind,
                            .ns = std::move(deleted->ns),
                            .name = std::move(deleted->name),
                            .uid = std::move(deleted->uid)});
  } else if (auto* const bad = std::get_if<BadObject>(&event.what)) {
    ++status_.bad_objects;
    if (bad->uid.empty() && !unnamed_since_) unnamed_since_ = now.mono;
    if (!bad->name.empty()) out.emplace_back(unreadable(target_.kind, std::move(*bad)));
  }
  const bool patient = !unnamed_since_ || now.mono - *unnamed_since_ < kUnnamedPatience;
  return patient || end_stream(WatchEnding::Unnamed, std::nullopt);
}

/// A line about nobody in particular: skipped, unless there is nothing else.
bool WatchMachine::bad_line(const BadObject& bad) {
  status_.last_error = malformed(bad.why);
  if (++unnamed_in_a_row_ < kUnnamedInARow) return true;
  ++status_.bad_objects;
  return end_stream(WatchEnding::Malformed, malformed("the stream is no watch: " + bad.why));
}

bool WatchMachine::error_event(const ErrorStatus& status) {
  auto error = error_from_status_object(status.json);
  auto ending = ending_of(error.kind);
  if (ending == WatchEnding::Unavailable || ending == WatchEnding::TimedOut) {
    ending = phase_ == WatchPhase::Watching && ++stuck_ >= kStuckAfter ? WatchEnding::Stuck : WatchEnding::ErrorEvent;
  }
  return end_stream(ending, std::move(error));
}

bool WatchMachine::end_stream(WatchEnding ending, std::optional<Error> error) {
  pending_ = Ended{.ending = ending, .error = std::move(error)};
  return false;
}

WatchMachine::Ended WatchMachine::reason_of(const std::optional<Error>& error) {
  auto why = pending_ ? std::move(*pending_)
                      : Ended{.ending = error ? ending_of(error->kind) : WatchEnding::Closed, .error = error};
  pending_.reset();
  const bool in_order = why.ending == WatchEnding::Closed;
  if (phase_ == WatchPhase::Initial && (in_order || why.ending == WatchEnding::TimedOut) &&
      ++unfinished_ >= kUnfinishedAfter) {
    why.ending = WatchEnding::Unfinished;
  }
  // A good moment for the list that we need anyway.
  if (phase_ == WatchPhase::Watching && in_order && unnamed_since_) why.ending = WatchEnding::Unnamed;
  return why;
}

void WatchMachine::ended(const std::optional<Error>& error, const Now& now, double chance, Out out) {
  if (stopped_ || (!asked_ && !(error && error->kind == ErrorKind::Cancelled))) return;
  asked_ = false;
  const auto why = reason_of(error);
  ++status_.endings[static_cast<std::size_t>(why.ending)];
  if (why.error) status_.last_error = why.error;
  forbidden_ = why.ending == WatchEnding::Forbidden;
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
  }
  return trouble_.next(now.mono, chance);
}

/// Pods without devices are most of a big cluster's pods and nothing that a Snapshot has to say.
void WatchMachine::keep(Object object) {
  const auto& meta = meta_of(object);
  const auto key = key_of(meta.ns, meta.name);
  bad_.erase(key);
  const auto* const pod = std::get_if<Pod>(&object);
  if (pod != nullptr && !can_hold_devices(*pod)) {
    objects_.erase(key);
  } else {
    objects_.insert_or_assign(key, std::move(object));
  }
}

void WatchMachine::begin_sync(bool fresh) {
  if (status_.synced && served_ && phase_ == WatchPhase::Watching) ++status_.relists;
  phase_ = watch_list_ ? WatchPhase::Initial : WatchPhase::Listing;
  not_older_ = fresh ? std::string() : version_;
  continue_.clear();
  objects_.clear();
  bad_.clear();
}

void WatchMachine::finish_sync(std::string version, Out out) {
  Snapshot snapshot{.kind = target_.kind,
                    .objects = {},
                    .served = true,
                    .api_version = std::string(api_version_of(target_.kind, api_version_))};
  snapshot.objects.reserve(objects_.size());
  for (auto& entry : objects_) snapshot.objects.push_back(std::move(entry.second));
  out.emplace_back(std::move(snapshot));
  for (auto& entry : bad_) out.emplace_back(unreadable(target_.kind, std::move(entry.second)));
  objects_.clear();
  bad_.clear();
  continue_.clear();
  version_ = std::move(version);
  not_older_.clear();
  phase_ = WatchPhase::Watching;
  status_.synced = true;
  served_ = true;
  unfinished_ = 0;
  unnamed_since_.reset();
  trouble_.reset();
}

WatchStatus WatchMachine::status() const {
  auto status = status_;
  if (stopped_) {
    status.state = WatchState::Stopped;
  } else if (forbidden_) {
    status.state = WatchState::Forbidden;
  } else if (!served_) {
    status.state = WatchState::NotServed;
  } else if (wait_until_) {
    status.state = WatchState::BackingOff;
  } else if (phase_ == WatchPhase::Watching) {
    status.state = WatchState::Watching;
  } else {
    status.state = status.synced ? WatchState::Resyncing : WatchState::Syncing;
  }
  return status;
}

}  // namespace dhc::k8s
