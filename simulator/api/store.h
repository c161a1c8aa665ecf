#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/now.h"
#include "simulator/api/field.h"
#include "simulator/api/kinds.h"
#include "simulator/api/ownership.h"

namespace dhc::sim {

/// Objects never change: a write makes a new one, so lists, history and watches share them.
using ObjectPtr = std::shared_ptr<const Json>;

struct Name {
  std::string ns;
  std::string name;
  friend auto operator<=>(const Name&, const Name&) = default;
};

enum class ChangeType : std::uint8_t { Added, Modified, Deleted };

/// One write, as watches and caches see it.
struct Change {
  ChangeType type = ChangeType::Added;
  std::uint64_t rv = 0;
  MonoTime at;
  ObjectPtr object;  ///< After the write; for Deleted the last state with the deletion's resourceVersion.
  ObjectPtr before;  ///< Before the write; null for Added.
};

using Objects = std::map<Name, ObjectPtr>;

/// What an API server keeps in etcd: objects, one counter of versions, a bounded history per resource. A value: same
/// seed and same calls, same bytes.
class Store {
 public:
  explicit Store(std::uint64_t seed);

  /// The time of the writes that follow.
  void set_now(const Now& now) { now_ = now; }
  [[nodiscard]] const Now& now() const { return now_; }
  [[nodiscard]] std::string time_text() const;

  [[nodiscard]] ObjectPtr get(Res res, const Name& name) const;
  [[nodiscard]] const Objects& all(Res res) const { return shelf(res).objects; }
  [[nodiscard]] std::uint64_t rv() const { return rv_; }

  /// Stores a new object; uid, resourceVersion, creationTimestamp, generation and a generateName are filled in. The
  /// name must be free.
  ObjectPtr create(Res res, Json object);

  /// Replaces an object. Nothing happens if nothing changed; generation grows with a changed spec; an object that waits
  /// for its finalizers goes when the last is removed.
  ObjectPtr replace(Res res, Json object);

  /// `replace` of what `change` makes of the object; nothing if it is absent.
  ObjectPtr edit(Res res, const Name& name, const std::function<void(Json&)>& change);

  /// What DELETE does: at once, or marks it and waits for grace (pods on a node) and finalizers.
  void request_delete(Res res, const Name& name, std::optional<std::int64_t> grace_seconds = std::nullopt);

  /// What a kubelet does at the end of the grace period: gone unless finalizers hold it.
  void finish_delete(Res res, const Name& name);

  /// The changes still remembered, oldest first.
  [[nodiscard]] const std::deque<Change>& changes(Res res) const { return shelf(res).changes; }

  /// A watch or continue token older than this is answered with 410.
  [[nodiscard]] std::uint64_t oldest_rv(Res res) const;

  /// The objects as they were at `rv` (not older than `oldest_rv`).
  [[nodiscard]] Objects snapshot_at(Res res, std::uint64_t rv) const;

  /// Forgets all history, as etcd's compaction does: every older version is 410 from now on.
  void compact() { compacted_ = rv_; }

  /// What etcd holds now, as a backup of it.
  [[nodiscard]] Store back_up() const { return *this; }
  /// etcd is started again from a backup: what was written since is gone, versions go back, the watch cache begins
  /// empty. **Source:** seen on 1.37.1 after `etcdutl snapshot restore`.
  void restore(const Store& backup);

  /// Ends every open watch, as a restart of the server does.
  void cut_watches() { ++server_; }
  /// Counts the server's restarts.
  [[nodiscard]] std::uint64_t server() const { return server_; }

  /// The server is a later one that knows this word for a device's health, too.
  void serve_health_word(std::string word) { health_words_.insert(std::move(word)); }
  [[nodiscard]] bool knows_health_word(std::string_view word) const { return health_words_.contains(word); }

  [[nodiscard]] Ownership& ownership(Res res, const Name& name) { return shelf(res).owners[name]; }

  [[nodiscard]] std::string new_uid();
  /// Random letters as generateName appends them.
  [[nodiscard]] std::string new_suffix(std::size_t length = 5);

  /// How many changes of one resource are remembered.
  static constexpr std::size_t kHistory = 8192;

 private:
  struct Shelf {
    Objects objects;
    std::map<Name, Ownership> owners;
    std::deque<Change> changes;
    std::uint64_t forgotten = 0;
  };
  [[nodiscard]] Shelf& shelf(Res res) { return shelves_.at(static_cast<std::size_t>(res)); }
  [[nodiscard]] const Shelf& shelf(Res res) const { return shelves_.at(static_cast<std::size_t>(res)); }
  void remember(Res res, Change change);
  void remove(Res res, const Name& name);
  std::uint64_t next_random();

  std::array<Shelf, kResCount> shelves_;
  std::uint64_t rv_ = 1000;
  std::uint64_t compacted_ = 0;
  std::uint64_t server_ = 0;
  std::uint64_t random_;
  std::set<std::string, std::less<>> health_words_ = {"Healthy", "Unhealthy", "Unknown"};
  Now now_;
};

}  // namespace dhc::sim
