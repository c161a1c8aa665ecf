#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/cluster/fresh_read.h"
#include "domain/cluster/world.h"

namespace dhc {

/// A watch whose deliveries a read has shown to be wrong: its kind is to be listed afresh.
struct ViewDoubt {
  k8s::Kind kind = k8s::Kind::Pod;
  std::string why;
  friend bool operator==(const ViewDoubt&, const ViewDoubt&) = default;
};

/// Holds what quorum reads have shown against what the watches deliver. A read is newer than its watch, most of the
/// time by a moment: only what the watch has not delivered `kCatchUp` later contradicts it. An object that is older
/// than what we held when the read was sent contradicts it at once: the server's data has gone back. Answers to writes,
/// and to lists at resourceVersion=0, prove nothing and are not asked.
class ViewChecks {
 public:
  /// How long a watch may be behind a read.
  static constexpr Millis kCatchUp = Seconds(30);
  /// At most so many reads wait for their watch; more are not noted, for one is enough to find a watch that is wrong.
  static constexpr std::size_t kMostWaiting = 1000;

  void note(const FreshRead& read, const Now& now);

  /// The kinds whose watch is wrong, one doubt each; a doubt is given once.
  [[nodiscard]] std::vector<ViewDoubt> take(const World& world, const Now& now);

  /// When `take` would conclude something new by time alone.
  [[nodiscard]] std::optional<MonoTime> next_change_at() const;

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    FreshRead read;
    MonoTime due;
  };
  std::map<std::pair<k8s::Kind, std::string>, Waiting> waiting_;  // by the kind and UID of what was held
  std::map<k8s::Kind, std::string> wrong_;
};

}  // namespace dhc
