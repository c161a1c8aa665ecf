#include "k8s-client/protocol/watch_table.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

TEST_CASE("the table of recovery is this") {
  const auto row = [](WatchEnding ending, WatchRemedy listing, WatchRemedy initial, WatchRemedy watching,
                      WatchRemedy checking) {
    CAPTURE(to_string(ending));
    CHECK(remedy_of(WatchPhase::Listing, ending) == listing);
    CHECK(remedy_of(WatchPhase::Initial, ending) == initial);
    CHECK(remedy_of(WatchPhase::Watching, ending) == watching);
    CHECK(remedy_of(WatchPhase::Checking, ending) == checking);
  };
  using enum WatchThen;
  using P = WatchPace;
  const WatchRemedy again{Again, P::BackOff};
  const WatchRemedy fresh{RelistFresh, P::Relist};
  const WatchRemedy stop{Stop, P::AtOnce};
  const WatchRemedy other{OtherVersion, P::AtOnce};
  const WatchRemedy json{AskJson, P::AtOnce};
  const WatchRemedy slow{Again, P::Slow};
  const WatchRemedy list{Relist, P::Relist};
  const WatchRemedy minute{RelistFresh, P::Minute};
  row(WatchEnding::Closed, again, again, {Again, P::Prompt}, again);
  row(WatchEnding::Unavailable, again, again, again, again);
  row(WatchEnding::TimedOut, again, again, again, again);
  row(WatchEnding::ErrorEvent, again, again, again, again);
  row(WatchEnding::Gone, fresh, fresh, list, list);
  row(WatchEnding::TooManyRequests, again, again, again, again);
  row(WatchEnding::Unauthorized, again, again, again, again);
  row(WatchEnding::Forbidden, slow, slow, slow, slow);
  row(WatchEnding::NotFound, other, other, other, other);
  row(WatchEnding::Invalid, fresh, {PagedList, P::AtOnce}, fresh, fresh);
  row(WatchEnding::Malformed, fresh, again, again, again);
  row(WatchEnding::Unfinished, again, {PagedList, P::BackOff}, again, again);
  row(WatchEnding::Stuck, fresh, fresh, fresh, fresh);
  row(WatchEnding::Unnamed, fresh, fresh, list, list);
  row(WatchEnding::Silent, again, again, fresh, again);
  row(WatchEnding::WentBack, minute, minute, minute, minute);
  row(WatchEnding::Asked, again, again, fresh, fresh);
  row(WatchEnding::OtherFormat, json, json, json, json);
  row(WatchEnding::Stopped, stop, stop, stop, stop);
}

TEST_CASE("only what cannot repeat itself comes at once") {
  for (const auto phase : kWatchPhases) {
    for (const auto ending : kWatchEndings) {
      const auto remedy = remedy_of(phase, ending);
      if (remedy.pace != WatchPace::AtOnce) continue;
      CAPTURE(to_string(phase));
      CAPTURE(to_string(ending));
      const bool once = remedy.then == WatchThen::OtherVersion || remedy.then == WatchThen::PagedList ||
                        remedy.then == WatchThen::AskJson || remedy.then == WatchThen::Stop;
      CHECK(once);
    }
  }
}

TEST_CASE("every list while watching goes through the relists' own back-off") {
  for (const auto ending : kWatchEndings) {
    const auto remedy = remedy_of(WatchPhase::Watching, ending);
    const bool lists = remedy.then == WatchThen::Relist || remedy.then == WatchThen::RelistFresh;
    CAPTURE(to_string(ending));
    CHECK(lists == (remedy.pace == WatchPace::Relist || remedy.pace == WatchPace::Minute));
  }
}

TEST_CASE("phases and endings have names of their own") {
  std::set<std::string_view> names;
  for (const auto ending : kWatchEndings) names.insert(to_string(ending));
  for (const auto phase : kWatchPhases) names.insert(to_string(phase));
  CHECK(names.size() == kWatchEndings.size() + kWatchPhases.size());
  CHECK(names.count("Unknown") == 0);
  for (std::size_t i = 0; i < kWatchEndings.size(); ++i) CHECK(static_cast<std::size_t>(kWatchEndings[i]) == i);
}

TEST_CASE("every kind of error has its row") {
  CHECK(ending_of(ErrorKind::NotFound) == WatchEnding::NotFound);
  CHECK(ending_of(ErrorKind::Gone) == WatchEnding::Gone);
  CHECK(ending_of(ErrorKind::TooManyRequests) == WatchEnding::TooManyRequests);
  CHECK(ending_of(ErrorKind::Unauthorized) == WatchEnding::Unauthorized);
  CHECK(ending_of(ErrorKind::Forbidden) == WatchEnding::Forbidden);
  CHECK(ending_of(ErrorKind::Invalid) == WatchEnding::Invalid);
  CHECK(ending_of(ErrorKind::TimedOut) == WatchEnding::TimedOut);
  CHECK(ending_of(ErrorKind::Cancelled) == WatchEnding::Stopped);
  CHECK(ending_of(ErrorKind::Malformed) == WatchEnding::Malformed);
  for (const auto kind : {ErrorKind::Unavailable, ErrorKind::Conflict, ErrorKind::Contested, ErrorKind::Blocked,
                          ErrorKind::Doubtful, ErrorKind::Declined, ErrorKind::Outdated, ErrorKind::Unread}) {
    CHECK(ending_of(kind) == WatchEnding::Unavailable);
  }
}
