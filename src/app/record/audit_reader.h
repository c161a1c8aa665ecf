#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/record/line.h"
#include "app/record/times.h"
#include "base/error.h"
#include "base/moment.h"
#include "k8s-client/model/object.h"

namespace dhc::record {

/// What an audit log held, and what of it could not be used.
struct AuditCounts {
  std::size_t events = 0;  ///< Of our kinds that changed something, or listed.
  std::size_t used = 0;
  std::size_t bare = 0;         ///< Without the object: logged below RequestResponse.
  std::size_t unreadable = 0;   ///< Objects that could not be read.
  std::size_t collections = 0;  ///< deletecollection: it does not say what it has deleted.
  std::size_t dry_runs = 0;     ///< Tried only (`dryRun`): they have changed nothing.
  std::size_t old = 0;          ///< Objects that were known as new, or newer: another write was logged before.
  std::size_t late = 0;         ///< More than a minute older than an event before them: played at the time of that.
};

/// Makes a recording of API servers' audit logs: what their writers were answered is what a watch would have told.
/// Nothing is known of an object before its first event. An answer may be logged after that of a later write, and
/// several servers each log their own: an object never goes back to an older version, nor comes again when it is gone.
/// One thread. **Source:** audit.k8s.io/v1 Event.
class AuditReader {
 public:
  /// Takes the lines of the recording, each without its line break.
  using Sink = std::function<Status(std::string_view)>;
  explicit AuditReader(Sink sink);
  ~AuditReader();
  AuditReader(const AuditReader&) = delete;
  AuditReader& operator=(const AuditReader&) = delete;

  /// One event of the log. Malformed: it is none; and whatever the sink answers.
  [[nodiscard]] Status feed(std::string_view line);

  /// When what the line tells was over; none: it is no event, and `feed` says why.
  [[nodiscard]] std::optional<WallTime> time_of(std::string_view line);

  [[nodiscard]] const AuditCounts& counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dhc::record
