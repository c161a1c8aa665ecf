#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "app/live/overview.h"
#include "base/now.h"

namespace dhc {

/// The overview with the number of the change that made each entry what it is. A reader is the number up to which it
/// has everything: a slow one gets what has changed meanwhile in one piece, and nothing is queued for it.
class OverviewLog {
 public:
  /// The two parts that are shown apart; no key is in both.
  enum class Part : std::uint8_t { Facts, Cluster };

  /// `name` tells this log apart from any other: a reader that comes back with a place in another begins anew.
  explicit OverviewLog(std::string name) : name_(std::move(name)) {}

  /// Takes in what a part says now, whole. True if anything has changed, or it is the first time. Of the keys that
  /// begin with `some` (empty: none do) it says only some: the others stay as they are.
  bool take(Part part, Overview now, std::string_view some = {});

  /// Whether both parts have been taken in.
  [[nodiscard]] bool is_whole() const { return parts_.size() == 2; }

  /// One event for a reader, in the text of server-sent events, and the reader's place after it.
  struct Piece {
    std::string text;
    std::string place;
  };

  /// What a reader in this place has not seen: event `change` with what is new and what is gone, or, where the place is
  /// empty, of another log or too old, event `whole` with everything. None: it has all, or not both parts are there.
  /// **Source:** HTML, "Server-sent events": event, id, data, each a line; the id comes back as Last-Event-ID.
  [[nodiscard]] std::optional<Piece> since(std::string_view place, const Now& now) const;

  /// How many keys that went away are remembered; a reader that missed older ones begins anew.
  static constexpr std::size_t kMostGone = 20'000;

 private:
  struct Entry {
    std::string text;
    std::uint64_t version = 0;
    Part part = Part::Facts;
  };
  void note_gone(const std::string& key);
  [[nodiscard]] std::optional<std::uint64_t> version_of(std::string_view place) const;

  std::string name_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::uint64_t> gone_;
  std::map<std::uint64_t, std::set<std::string>> gone_in_;  // the same, by version
  std::uint64_t version_ = 0;
  std::uint64_t forgotten_ = 0;  // keys that went away up to this version are not all remembered
  std::set<Part> parts_;
};

/// One event in the text of server-sent events; `data` is one line. `id` empty: none.
[[nodiscard]] std::string server_sent_event(std::string_view event, std::string_view id, std::string_view data);

/// The time as the page reads it: milliseconds since 1970.
[[nodiscard]] std::int64_t epoch_millis(WallTime at);

}  // namespace dhc
