#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace dhc::record {

/// Of the format. A recording of a newer one is refused. 1: the first.
inline constexpr std::int64_t kVersion = 1;

/// What a line is about, by its first key.
enum class What : std::uint8_t {
  File,      ///< `recording`: the first of each file.
  Base,      ///< `base`: both clocks at one moment; all later times count from it.
  List,      ///< `list`: the whole of one kind; so many objects follow.
  Object,    ///< The kind's name: one object that was listed, added or changed.
  Gone,      ///< `gone`: an object was removed.
  Bad,       ///< `bad`: an object that could not be read.
  Told,      ///< `told`: a watch's word of itself.
  Answer,    ///< `answer`: what became of an action.
  Policy,    ///< `policy`: a configuration was taken.
  Rejected,  ///< `rejected`: a configuration was not.
  Leads,     ///< `leads`: an election's word.
  Earlier,   ///< `earlier`: the state of 0.1.0.
  Clock,     ///< `clock`: how far the server's clock is ahead.
  Webhook,   ///< `webhook`: what is wrong with the webhook.
  Take,      ///< `take`: the lines since the last one were taken in, at this time.
  Plan,      ///< `plan`: what was decided at this time.
  Idle,      ///< `idle`: times at which nothing new was decided.
  Begun,  ///< `begun`: the lines before it, of a file that is not the first, repeat what the file before it ended with.
};

/// One line of a recording.
struct Line {
  What what = What::File;
  std::string key;   ///< Of List and Object the kind, of Object and Gone `Kind/uid`, of Told `Kind/name`.
  std::string text;  ///< With its line break.
};

/// Of List and Object lines of that kind.
[[nodiscard]] inline std::string_view kind_in(std::string_view key) { return key.substr(0, key.find('/')); }

}  // namespace dhc::record
