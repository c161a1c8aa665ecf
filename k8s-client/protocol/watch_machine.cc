#include "k8s-client/protocol/watch_machine.h"

#include <utility>

#include <fmt/format.h>

#include "k8s-client/protocol/api_error.h"
#include "k8s-client/protocol/version_order.h"

namespace dhc::k8s {
namespace {

constexpr Millis kMarkerOverdue = std::chrono::minutes(1);
constexpr Millis kUnnamedPatience = std::chrono::minutes(1);
constexpr std::size_t kUnnamedInARow = 10;
constexpr std::size_t kStuckAfter = 3;
constexpr Millis kBetweenWords = Seconds(5);
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
    case WatchPhase::Checking:
      return SendList{build_check(target_, api_version_)};
    case WatchPhase::Watching:
      return OpenStream{build_watch(target_, api_version_, version_, chance)};
  }
  return StopWatching{};
}

/// Somebody who serves this kind answered.
void WatchMachine::answered() {
  forbidden_ = false;
  versions_absent_ = 0;
  rounds_absent_ = 0;
  stuck_ = 0;
  slow_.reset();
}

void WatchMachine::tell(WatchWord word, const Now& now, Out out) {
  out.emplace_back(Told{.kind = target_.kind, .name = target_.name, .word = word, .at = now.mono});
}

/// The stream, or the end of a list, has spoken. Not told with every event: each word costs the controller a turn.
void WatchMachine::heard(bool tell_now, const Now& now, Out out) {
  silent_ = 0;
  status_.last_event_at = now.mono;
  if (!tell_now && told_at_ && now.mono - *told_at_ < kBetweenWords) return;
  told_at_ = now.mono;
  tell(WatchWord::Heard, now, out);
}

void WatchMachine::note_back(std::string_view version) {
  ++status_.went_back;
  status_.went_back_how = fmt::format("the API server's version is {}, and was {}", version, newest_);
}

/// The answer to the check before a stream: false if the server's version is older than ours.
bool WatchMachine::checked(const std::string& version, const Now& now, double chance, Out out) {
  if (!is_place(version)) {
    ended(malformed("a list without a version"), now, chance, out);
    return false;
  }
  // Not as if the stream had spoken: it may be refused all the same, again and again.
  if (!is_older_version(version, newest_)) return true;
  note_back(version);
  (void)end_stream(WatchEnding::WentBack, std::nullopt);
  ended(std::nullopt, now, chance, out);
  return false;
}

void WatchMachine::page(ListPage page, const Now& now, double chance, Out out) {
  if (asked_ && pending_) return ended(std::nullopt, now, chance, out);
  if (asked_ && phase_ == WatchPhase::Checking) {
    if (!checked(page.resource_version, now, chance, out)) return;
    asked_ = false;
    phase_ = WatchPhase::Watching;
    // What was interrupted may be believed again; it is no newer for that.
    out.emplace_back(Told{.kind = target_.kind,
                          .name = target_.name,
                          .word = WatchWord::Heard,
                          .at = status_.last_event_at.value_or(now.mono)});
    return;
  }
  if (!asked_ || phase_ != WatchPhase::Listing) return;
  const bool last = page.continue_token.empty();
  if (last ? !is_place(page.resource_version) : page.continue_token == continue_) {
    return ended(malformed(last ? "a list without a version" : "a list whose pages do not go on"), now, chance, out);
  }
  answered();
  status_.events += page.objects.size() + page.bad.size();
  status_.bad_objects += page.bad.size();
  for (auto& object : page.objects) keep(std::move(object));
  for (auto& bad : page.bad) bad_.insert_or_assign(key_of(bad.ns, bad.name), std::move(bad));
  asked_ = false;
  continue_ = std::move(page.continue_token);
  if (last) finish_sync(std::move(page.resource_version), now, out);
}

bool WatchMachine::event(WatchEvent event, const Now& now, Out out) {
  if (!asked_ || pending_ || phase_ == WatchPhase::Listing || phase_ == WatchPhase::Checking) return false;
  ++status_.events;
  if (const auto* const error = std::get_if<ErrorStatus>(&event.what)) return error_event(*error);
  const auto* const bad = std::get_if<BadObject>(&event.what);
  const bool is_word = bad == nullptr || !bad->uid.empty();
  if (is_word) {
    unnamed_in_a_row_ = 0;
    answered();
  } else if (!bad_line(*bad)) {
    return false;
  }
  if (phase_ == WatchPhase::Initial) return initial(std::move(event), now, out);
  const bool is_bookmark = std::holds_alternative<Bookmark>(event.what);
  if (!live(std::move(event), now, out)) return false;
  if (is_word) heard(is_bookmark, now, out);
  return true;
}

bool WatchMachine::initial(WatchEvent event, const Now& now, Out out) {
  if (auto* const changed = std::get_if<Changed>(&event.what)) {
    keep(std::move(changed->object));
  } else if (const auto* const deleted = std::get_if<Deleted>(&event.what)) {
    objects_.erase(key_of(deleted->ns, deleted->name));
    bad_.erase(key_of(deleted->ns, deleted->name));
  } else if (auto* const bad = std::get_if<BadObject>(&event.what)) {
    ++status_.bad_objects;
    bad_.insert_or_assign(key_of(bad->ns, bad->name), std::move(*bad));
  } else if (const auto* const mark = std::get_if<Bookmark>(&event.what)) {
    if (!mark->initial_events_end) {
      return now.mono - started_at_ < kMarkerOverdue || end_stream(WatchEnding::Closed, std::nullopt);
    }
    if (!is_place(event.resource_version)) {
      return end_stream(WatchEnding::Malformed, malformed("the end of the initial events has no version"));
    }
    finish_sync(std::move(event.resource_version), now, out);
  }
  return true;
}

bool WatchMachine::live(WatchEvent event, const Now& now, Out out) {
  if (std::holds_alternative<Bookmark>(event.what) && is_older_version(event.resource_version, newest_)) {
    note_back(event.resource_version);
    return end_stream(WatchEnding::WentBack, std::nullopt);
  }
  if (is_place(event.resource_version)) {
    if (!is_older_version(event.resource_version, newest_)) newest_ = event.resource_version;
    version_ = std::move(event.resource_version);
  }
  if (auto* const changed = std::get_if<Changed>(&event.what)) {
    shared_.share(changed->object);
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
  return unfollowable(bad.why);
}

bool WatchMachine::unfollowable(std::string why) {
  ++status_.bad_objects;
  return end_stream(WatchEnding::Malformed, malformed("the stream is no watch: " + std::move(why)));
}

bool WatchMachine::error_event(const ErrorStatus& status) {
  auto error = error_from_status_object(status.body);
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

/// Pods without devices are most of a big cluster's pods and nothing that a Snapshot has to say; but a driver's own pod
/// tells since when it has run.
void WatchMachine::keep(Object object) {
  const auto& meta = meta_of(object);
  const auto key = key_of(meta.ns, meta.name);
  bad_.erase(key);
  shared_.share(object);
  const auto* const pod = std::get_if<Pod>(&object);
  if (pod != nullptr && !is_kept_whole(*pod) && pod->plugin_folders.empty()) {
    objects_.erase(key);
  } else {
    objects_.insert_or_assign(key, std::move(object));
  }
}

void WatchMachine::finish_sync(std::string version, const Now& now, Out out) {
  if (!status_.behind && is_older_version(version, newest_)) note_back(version);
  const bool went_back = status_.behind || is_older_version(version, newest_);
  status_.behind = false;
  Snapshot snapshot{.kind = target_.kind,
                    .objects = {},
                    .served = true,
                    .api_version = std::string(api_version_of(target_.kind, api_version_)),
                    .went_back = went_back};
  snapshot.objects.reserve(objects_.size());
  for (auto& entry : objects_) snapshot.objects.push_back(std::move(entry.second));
  for (auto& entry : bad_) snapshot.unreadable.push_back(unreadable(target_.kind, std::move(entry.second)));
  auto bad = snapshot.unreadable;
  out.emplace_back(std::move(snapshot));
  for (auto& object : bad) out.emplace_back(std::move(object));
  heard(true, now, out);
  objects_.clear();
  bad_.clear();
  continue_.clear();
  version_ = std::move(version);
  newest_ = version_;
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
  } else if (phase_ == WatchPhase::Watching || phase_ == WatchPhase::Checking) {
    status.state = WatchState::Watching;
  } else {
    status.state = status.synced ? WatchState::Resyncing : WatchState::Syncing;
  }
  return status;
}

}  // namespace dhc::k8s
