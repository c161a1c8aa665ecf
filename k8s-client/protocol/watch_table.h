#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace dhc::k8s {

/// What a watch is doing, apart from waiting.
enum class WatchPhase : std::uint8_t {
  Listing,   ///< Asking for pages; nothing is known until the last one.
  Initial,   ///< A WatchList before its end marker; nothing is known until then.
  Watching,  ///< Everything up to a version is delivered; events come in.
  Checking,  ///< Likewise, but the stream is over. Before the next one: is the server's version older than ours?
};
inline constexpr std::array kWatchPhases = {WatchPhase::Listing, WatchPhase::Initial, WatchPhase::Watching,
                                            WatchPhase::Checking};

/// How a request or a stream of a watch came to its end.
enum class WatchEnding : std::uint8_t {
  Closed,           ///< The body ended as HTTP says it should.
  Unavailable,      ///< Refused, cut, 5xx.
  TimedOut,         ///< Silence beyond the idle limit, 504, no connection in time.
  ErrorEvent,       ///< An ERROR event in the stream that no other row names.
  Gone,             ///< 410 as status or event, or 504 ResourceVersionTooLarge.
  TooManyRequests,  ///< 429.
  Unauthorized,     ///< 401.
  Forbidden,        ///< 403.
  NotFound,         ///< 404: the server does not serve this version of the kind.
  Invalid,          ///< 400, 422 and the like: among them a server without WatchList.
  Malformed,        ///< The body was not what it should be, or ten lines in a row were about nothing.
  Unfinished,       ///< The second WatchList in a row that ended in order, or in silence, before its end marker.
  Stuck,            ///< The third ERROR event in a row with nothing between them.
  Unnamed,          ///< We could not say which object an event was about, so we may have missed something.
  Silent,           ///< The second stream in a row that ended in silence.
  WentBack,         ///< The server's version is older than what the stream had said.
  Asked,            ///< Somebody wants to know at once what the server has, without a doubt about what was delivered.
  OtherFormat,      ///< Protobuf was asked for, and refused (406, 415: Invalid to a list) or not what it should be.
  Stopped,          ///< We were asked to stop.
};
inline constexpr std::array kWatchEndings = {
    WatchEnding::Closed,   WatchEnding::Unavailable,     WatchEnding::TimedOut,     WatchEnding::ErrorEvent,
    WatchEnding::Gone,     WatchEnding::TooManyRequests, WatchEnding::Unauthorized, WatchEnding::Forbidden,
    WatchEnding::NotFound, WatchEnding::Invalid,         WatchEnding::Malformed,    WatchEnding::Unfinished,
    WatchEnding::Stuck,    WatchEnding::Unnamed,         WatchEnding::Silent,       WatchEnding::WentBack,
    WatchEnding::Asked,    WatchEnding::OtherFormat,     WatchEnding::Stopped};

/// What comes next.
enum class WatchThen : std::uint8_t {
  Again,         ///< The same once more: this page, this WatchList, or, after a check, a watch from the last version.
  Relist,        ///< The whole kind again, no older than the last version.
  RelistFresh,   ///< The whole kind again, with no version: what the server has now.
  PagedList,     ///< This server has no WatchList: remember it, list by pages.
  AskJson,       ///< The whole kind again, in JSON: remember it.
  OtherVersion,  ///< The next API version of the kind; when all have been tried: not served.
  Stop,
};

/// How soon it comes.
enum class WatchPace : std::uint8_t {
  AtOnce,   ///< Only where it cannot repeat itself.
  Prompt,   ///< At once, but with back-off if the stream lived for less than 5 s.
  BackOff,  ///< 0.8 s doubling to 30 s, full jitter; forgotten after a sync or 2 min of health.
  Relist,   ///< A back-off of its own, forgotten only after 2 min without a relist: a sync that is at once followed by
            ///< 410 must not start a storm.
  Slow,     ///< Back-off up to 60 s: an operator has to do something.
  Minute,   ///< At once, but not within a minute of the last time: two servers that disagree must not start a storm.
};

struct WatchRemedy {
  WatchThen then;
  WatchPace pace;
  friend bool operator==(const WatchRemedy&, const WatchRemedy&) = default;
};

/// The whole of recovery: every phase, every way to end. In addition to the pace, a Retry-After is always honoured.
[[nodiscard]] WatchRemedy remedy_of(WatchPhase phase, WatchEnding ending);

/// The row of an error. Kinds that make no sense for a read count as Unavailable.
[[nodiscard]] WatchEnding ending_of(ErrorKind kind);

/// Names for logs and metrics.
[[nodiscard]] std::string_view to_string(WatchPhase phase);
[[nodiscard]] std::string_view to_string(WatchEnding ending);

}  // namespace dhc::k8s
