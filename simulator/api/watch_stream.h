#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/now.h"
#include "simulator/api/render.h"
#include "simulator/api/store.h"
#include "simulator/api/target.h"

namespace dhc::sim {

/// Faults of one watch, by script.
struct WatchFaults {
  std::optional<std::size_t> cut_after;  ///< The connection breaks after this many bytes.
  bool duplicate = false;                ///< Every event comes twice.
  bool reorder = false;                  ///< Events of one delivery come in reverse order.
};

/// What a watch has to say now.
struct WatchOutput {
  std::string bytes;
  bool ended = false;  ///< The body ends after `bytes`.
  bool cut = false;    ///< Together with `ended`: not as HTTP ends a body.
};

/// One open watch: a place in the store's history. The same value serves sockets and virtual time.
class WatchStream {
 public:
  struct Options {
    Res res = Res::Pods;
    Selection selection;
    Rendering rendering;
    std::uint64_t from = 0;         ///< Events after this version.
    bool initial_events = false;    ///< First everything there is, as ADDED.
    bool initial_bookmark = false;  ///< Then the bookmark that says so.
    bool bookmarks = false;
    std::optional<MonoTime> ends_at;
    Millis bookmark_every = Seconds(60);
    WatchFaults faults;
  };
  explicit WatchStream(Options options);

  /// The events since the last poll, and whether the stream ends here.
  [[nodiscard]] WatchOutput poll(const Store& store, const Now& now);

  void set_faults(WatchFaults faults) { options_.faults = faults; }

  /// When a bookmark or the end is due, if nothing is written before.
  [[nodiscard]] std::optional<MonoTime> next_due() const;

 private:
  void add_initial(const Store& store, std::vector<std::string>& lines);
  void add_changes(const Store& store, std::vector<std::string>& lines);
  [[nodiscard]] std::string event(std::string_view type, const Json& object);
  [[nodiscard]] std::string bookmark(std::uint64_t rv, bool initial_end) const;
  [[nodiscard]] WatchOutput finish(std::vector<std::string> lines, bool ended);

  Options options_;
  std::uint64_t at_ = 0;
  bool started_ = false;
  std::uint64_t server_ = 0;
  bool columns_sent_ = false;
  std::optional<MonoTime> next_bookmark_;
  std::size_t sent_ = 0;
};

}  // namespace dhc::sim
