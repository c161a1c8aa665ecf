#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/backoff.h"
#include "base/now.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/model/shared_parts.h"
#include "k8s-client/protocol/delivery.h"
#include "k8s-client/protocol/request.h"
#include "k8s-client/protocol/watch_requests.h"
#include "k8s-client/protocol/watch_status.h"
#include "k8s-client/protocol/watch_table.h"

namespace dhc::k8s {

/// Send this and give the page to `page`, or why there is none to `ended`.
struct SendList {
  Request request;
};
/// Stream this, give each line to `event` and the end to `ended`.
struct OpenStream {
  Request request;
};
/// Do nothing for so long, then ask again.
struct WaitFor {
  Millis duration;
};
/// Nothing more will come.
struct StopWatching {};

using WatchStep = std::variant<SendList, OpenStream, WaitFor, StopWatching>;

/// One watch as a value: told what happened, the time and a number in [0,1), it says what to do next and what to
/// deliver. `watch_table.h` holds all recovery; this class only keeps what the table's words mean (the last version,
/// the pages so far). What was delivered stays valid until a new list is complete: a Snapshot is delivered whole, and
/// covers what happened while nobody was watching. The versions of lists, bookmarks and events of this one kind are
/// compared with each other where they can be: a server whose version is older than what it has said has been restored
/// to the past, or is another one, and the kind is listed afresh.
class WatchMachine {
 public:
  explicit WatchMachine(WatchTarget target);

  /// What to do now. Asking twice does no harm.
  [[nodiscard]] WatchStep next(const Now& now, double chance);

  /// The page that SendList asked for.
  void page(ListPage page, const Now& now, double chance, std::vector<Delivery>& out);

  /// An event of the stream that OpenStream asked for. False: end the stream, then call `ended`.
  [[nodiscard]] bool event(WatchEvent event, const Now& now, std::vector<Delivery>& out);

  /// The stream is over (no error: it was closed in order), or there is no page. After `event` said false, its reason
  /// counts and not `error`.
  void ended(const std::optional<Error>& error, const Now& now, double chance, std::vector<Delivery>& out);

  /// Somebody has seen that what was delivered is wrong: the kind is listed afresh, at most once a minute. The caller
  /// then ends the request under way, with an error other than Cancelled.
  void doubt(std::string why, const Now& now, std::vector<Delivery>& out);

  /// Somebody wants to know at once what the server has: the kind is listed afresh, unless that is under way. The
  /// caller then ends the request under way, with an error other than Cancelled.
  void list_afresh(const Now& now, std::vector<Delivery>& out);

  /// Nothing more is wanted: every next step is StopWatching.
  void stop() { stopped_ = true; }

  /// The body of OpenStream's answer cannot be followed any further. False: end the stream, then call `ended`.
  [[nodiscard]] bool unfollowable(std::string why);

  /// Bodies' bytes, for the status.
  void count_bytes(std::size_t bytes, WireFormat format) {
    (format == WireFormat::Protobuf ? status_.protobuf_bytes : status_.json_bytes) += bytes;
  }

  [[nodiscard]] WatchStatus status() const;

 private:
  struct Ended {
    WatchEnding ending;
    std::optional<Error> error;
  };
  using Out = std::vector<Delivery>&;

  [[nodiscard]] bool initial(WatchEvent event, const Now& now, Out out);
  [[nodiscard]] bool live(WatchEvent event, const Now& now, Out out);
  [[nodiscard]] bool bad_line(const BadObject& bad);
  [[nodiscard]] bool end_stream(WatchEnding ending, std::optional<Error> error);
  [[nodiscard]] bool error_event(const ErrorStatus& status);
  [[nodiscard]] Ended reason_of(const std::optional<Error>& error, const Now& now);
  void answered();
  void heard(bool tell_now, const Now& now, Out out);
  void tell(WatchWord word, const Now& now, Out out);
  [[nodiscard]] bool checked(const std::string& version, const Now& now, double chance, Out out);
  void note_back(std::string_view version);
  void keep(Object object);
  void begin_sync(bool fresh);
  void finish_sync(std::string version, const Now& now, Out out);
  [[nodiscard]] Millis follow(WatchRemedy remedy, const Now& now, double chance, Out out);
  [[nodiscard]] Millis other_version(const Now& now, double chance, Out out);
  [[nodiscard]] Millis wait_of(WatchPace pace, const Now& now, double chance);

  WatchTarget target_;
  WatchPhase phase_ = WatchPhase::Initial;
  WatchStatus status_;
  std::string version_;    ///< All up to here is delivered; empty before the first sync.
  std::string newest_;     ///< The newest version that a list, bookmark or event has named since the last sync.
  std::string not_older_;  ///< What the next WatchList may not be older than; empty: no version is sent.
  std::string continue_;   ///< Of the next page.
  SharedParts shared_;     ///< Of all that is delivered.
  std::map<std::string, Object> objects_;  ///< Of a list that is not complete, by namespace and name.
  std::map<std::string, BadObject> bad_;   ///< Likewise.
  std::optional<MonoTime> wait_until_;
  MonoTime started_at_{};                  ///< When the last request was asked for.
  bool asked_ = false;                     ///< A request is on its way.
  std::optional<Ended> pending_;           ///< Why `event` said false.
  std::optional<MonoTime> unnamed_since_;  ///< We may have missed an event since then.
  std::size_t api_version_ = 0;
  std::size_t versions_absent_ = 0;  ///< 404 in a row, over the versions.
  std::size_t rounds_absent_ = 0;    ///< Rounds over all versions that found none.
  std::size_t unfinished_ = 0;       ///< WatchLists in a row that ended in order, or in silence, before their marker.
  std::size_t stuck_ = 0;            ///< ERROR events in a row without any other.
  std::size_t silent_ = 0;           ///< Streams in a row that ended in silence, with no word since the first of them.
  std::optional<MonoTime> told_at_;  ///< When Heard was last delivered.
  std::optional<MonoTime> back_at_;  ///< When a list was last begun, or is to begin, because the server went back.
  std::size_t unnamed_in_a_row_ = 0;
  bool watch_list_ = true;  ///< False: this server has no WatchList.
  bool served_ = true;
  bool forbidden_ = false;
  bool stopped_ = false;
  Backoff trouble_;
  Backoff relist_;
  Backoff slow_;
};

}  // namespace dhc::k8s
