#include "k8s-client/protocol/watch_table.h"

namespace dhc::k8s {
namespace {

using enum WatchThen;
using P = WatchPace;

struct Row {
  WatchRemedy listing;
  WatchRemedy initial;
  WatchRemedy watching;
  WatchRemedy checking;
};

// clang-format off
/// Why, where the row does not say it:
/// - A refused connection and 429 never cause a list: a server that comes back must not be met by a storm of them.
/// - 410 while watching: a WatchList no older than what we have; if that is gone as well (an old replica, a restored
///   etcd), whatever the server has. A paged list never sends a version, so it is a consistent read in either case.
/// - Unfinished: something on the way does not know sendInitialEvents, so its list will never be complete.
/// - Stuck: the server cannot go on from our version (an object it cannot decode), and would say so for ever.
/// - Invalid in a WatchList: the server has none (422 of 1.27 to 1.33 without the gate, 400 of older ones). While
///   watching: the version or something of ours is refused, so the same once more would be refused for ever.
/// - Silent: a server that has been restored to the past accepts a watch from a version that is still to come, and says
///   nothing until it is there (seen on 1.37.1); a stale proxy does the same. A list tells them from a quiet cluster.
/// - OtherFormat cannot repeat itself: JSON is asked for from then on. A WatchList that is refused may lack WatchList or
///   protobuf; the paged list that follows tells which.
/// - Checking asks for one object without a version: a consistent read, whose version no server has reason to be behind.
Row row_of(WatchEnding ending) {
  switch (ending) {                     //      Listing                     Initial                     Watching                    Checking
    case WatchEnding::Closed:           return {{Again, P::BackOff},        {Again, P::BackOff},        {Again, P::Prompt},         {Again, P::BackOff}};
    case WatchEnding::Unavailable:      return {{Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::TimedOut:         return {{Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::ErrorEvent:       return {{Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::Gone:             return {{RelistFresh, P::Relist},   {RelistFresh, P::Relist},   {Relist, P::Relist},        {Relist, P::Relist}};
    case WatchEnding::TooManyRequests:  return {{Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::Unauthorized:     return {{Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::Forbidden:        return {{Again, P::Slow},           {Again, P::Slow},           {Again, P::Slow},           {Again, P::Slow}};
    case WatchEnding::NotFound:         return {{OtherVersion, P::AtOnce},  {OtherVersion, P::AtOnce},  {OtherVersion, P::AtOnce},  {OtherVersion, P::AtOnce}};
    case WatchEnding::Invalid:          return {{RelistFresh, P::Relist},   {PagedList, P::AtOnce},     {RelistFresh, P::Relist},   {RelistFresh, P::Relist}};
    case WatchEnding::Malformed:        return {{RelistFresh, P::Relist},   {Again, P::BackOff},        {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::Unfinished:       return {{Again, P::BackOff},        {PagedList, P::BackOff},    {Again, P::BackOff},        {Again, P::BackOff}};
    case WatchEnding::Stuck:            return {{RelistFresh, P::Relist},   {RelistFresh, P::Relist},   {RelistFresh, P::Relist},   {RelistFresh, P::Relist}};
    case WatchEnding::Unnamed:          return {{RelistFresh, P::Relist},   {RelistFresh, P::Relist},   {Relist, P::Relist},        {Relist, P::Relist}};
    case WatchEnding::Silent:           return {{Again, P::BackOff},        {Again, P::BackOff},        {RelistFresh, P::Relist},   {Again, P::BackOff}};
    case WatchEnding::WentBack:         return {{RelistFresh, P::Minute},   {RelistFresh, P::Minute},   {RelistFresh, P::Minute},   {RelistFresh, P::Minute}};
    case WatchEnding::Asked:            return {{Again, P::BackOff},        {Again, P::BackOff},        {RelistFresh, P::Relist},   {RelistFresh, P::Relist}};
    case WatchEnding::OtherFormat:      return {{AskJson, P::AtOnce},       {AskJson, P::AtOnce},       {AskJson, P::AtOnce},       {AskJson, P::AtOnce}};
    case WatchEnding::Stopped:          return {{Stop, P::AtOnce},          {Stop, P::AtOnce},          {Stop, P::AtOnce},          {Stop, P::AtOnce}};
  }
  return {{Again, P::BackOff}, {Again, P::BackOff}, {Again, P::BackOff}, {Again, P::BackOff}};
}
// clang-format on

}  // namespace

WatchRemedy remedy_of(WatchPhase phase, WatchEnding ending) {
  const auto row = row_of(ending);
  switch (phase) {
    case WatchPhase::Listing:
      return row.listing;
    case WatchPhase::Initial:
      return row.initial;
    case WatchPhase::Watching:
      return row.watching;
    case WatchPhase::Checking:
      return row.checking;
  }
  return row.watching;
}

WatchEnding ending_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::NotFound:
      return WatchEnding::NotFound;
    case ErrorKind::Gone:
      return WatchEnding::Gone;
    case ErrorKind::TooManyRequests:
      return WatchEnding::TooManyRequests;
    case ErrorKind::Unauthorized:
      return WatchEnding::Unauthorized;
    case ErrorKind::Forbidden:
      return WatchEnding::Forbidden;
    case ErrorKind::Invalid:
      return WatchEnding::Invalid;
    case ErrorKind::TimedOut:
      return WatchEnding::TimedOut;
    case ErrorKind::Cancelled:
      return WatchEnding::Stopped;
    case ErrorKind::Malformed:
      return WatchEnding::Malformed;
    case ErrorKind::Conflict:
    case ErrorKind::Contested:
    case ErrorKind::Blocked:
    case ErrorKind::Doubtful:
    case ErrorKind::Declined:
    case ErrorKind::Outdated:
    case ErrorKind::Altered:
    case ErrorKind::Unread:
    case ErrorKind::Unavailable:
      return WatchEnding::Unavailable;
  }
  return WatchEnding::Unavailable;
}

std::string_view to_string(WatchPhase phase) {
  switch (phase) {
    case WatchPhase::Listing:
      return "Listing";
    case WatchPhase::Initial:
      return "Initial";
    case WatchPhase::Watching:
      return "Watching";
    case WatchPhase::Checking:
      return "Checking";
  }
  return "Unknown";
}

std::string_view to_string(WatchEnding ending) {
  switch (ending) {
    case WatchEnding::Closed:
      return "Closed";
    case WatchEnding::Unavailable:
      return "Unavailable";
    case WatchEnding::TimedOut:
      return "TimedOut";
    case WatchEnding::ErrorEvent:
      return "ErrorEvent";
    case WatchEnding::Gone:
      return "Gone";
    case WatchEnding::TooManyRequests:
      return "TooManyRequests";
    case WatchEnding::Unauthorized:
      return "Unauthorized";
    case WatchEnding::Forbidden:
      return "Forbidden";
    case WatchEnding::NotFound:
      return "NotFound";
    case WatchEnding::Invalid:
      return "Invalid";
    case WatchEnding::Malformed:
      return "Malformed";
    case WatchEnding::Unfinished:
      return "Unfinished";
    case WatchEnding::Stuck:
      return "Stuck";
    case WatchEnding::Unnamed:
      return "Unnamed";
    case WatchEnding::Silent:
      return "Silent";
    case WatchEnding::WentBack:
      return "WentBack";
    case WatchEnding::Asked:
      return "Asked";
    case WatchEnding::OtherFormat:
      return "OtherFormat";
    case WatchEnding::Stopped:
      return "Stopped";
  }
  return "Unknown";
}

}  // namespace dhc::k8s
