#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/now.h"
#include "k8s-client/model/object.h"
#include "k8s-client/protocol/watch_table.h"

namespace dhc::k8s {

/// Where a watch stands, in one word for logs, metrics and readiness.
enum class WatchState : std::uint8_t {
  Syncing,     ///< Before the first complete list.
  Watching,    ///< Delivering what happens.
  Resyncing,   ///< Listing again; what was delivered stays valid.
  BackingOff,  ///< Waiting after something went wrong.
  Forbidden,   ///< 403: a verb is missing.
  NotServed,   ///< The server does not serve this kind; asked again every 5 minutes.
  Stopped,
};
[[nodiscard]] std::string_view to_string(WatchState state);

/// A watch as metrics and readiness see it.
struct WatchStatus {
  Kind kind = Kind::Pod;
  WatchState state = WatchState::Syncing;
  bool synced = false;              ///< A Snapshot has been delivered, be it that of a kind not served.
  std::optional<Error> last_error;  ///< Kept after recovery: for people.
  std::array<std::uint64_t, kWatchEndings.size()> endings{};  ///< Requests and streams by how they ended, in the order
                                                              ///< of `kWatchEndings`.
  std::uint64_t relists = 0;                                  ///< Whole lists begun after the first one was complete.
  std::uint64_t events = 0;                                   ///< Lines and list items read.
  std::uint64_t json_bytes = 0;                               ///< Of bodies in JSON.
  std::uint64_t protobuf_bytes = 0;                           ///< Of bodies in protobuf.
  std::uint64_t bad_objects = 0;                              ///< Objects and lines that could not be read.
  std::uint64_t went_back = 0;            ///< Times that the server's data was older than what had been delivered.
  std::string went_back_how;              ///< The last time, in words: both versions; empty: never.
  bool behind = false;                    ///< It was, and a fresh list is not complete yet.
  std::optional<MonoTime> last_event_at;  ///< Events, bookmarks and ends of lists, of this watch alone.
};

/// Two watches of one kind as one: counts add up, and the one that is worse off speaks.
[[nodiscard]] WatchStatus merged(const WatchStatus& a, const WatchStatus& b);

}  // namespace dhc::k8s
