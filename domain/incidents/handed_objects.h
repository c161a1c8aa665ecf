#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/now.h"

namespace dhc {

/// One object of another's kind by which a node is handed over, from before it is asked for until nothing of it is left
/// to do.
struct HandedObject {
  enum class Phase : std::uint8_t {
    Noted,  ///< It is to be made, and may have been.
    Made,
    Over,  ///< Deleted, or left to whoever asked for it to be kept; remembered while its incidents go on.
  };
  std::string node;
  std::string device;  ///< For people, as `to_string` of the key; empty: it stands for the node.
  std::string policy;
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string incident;             ///< Of which it was made; the object bears it.
  std::set<std::string> incidents;  ///< All that it stands for, this one included.
  bool keeps = false;               ///< It is not deleted when they are over.
  Phase phase = Phase::Noted;
  WallTime at;  ///< When it was noted.
  // of this process alone
  std::uint64_t revision = 0;  ///< The incident store's that must be written down before it is asked for.
  bool is_doubted = true;      ///< Noted: it may be there; of what another process has noted nobody knows.
  MonoTime comes_by{};         ///< Until when a request without an answer may still be carried out.
  friend bool operator==(const HandedObject&, const HandedObject&) = default;
};

/// What is remembered of the objects that were made: none is made twice for one incident, and none is forgotten. By a
/// name that follows from the policy's rules and the node or device.
class HandedObjects {
 public:
  /// So many at most: what comes after waits until one is over.
  static constexpr std::size_t kMost = 128;
  /// Incidents remembered of one object.
  static constexpr std::size_t kMostIncidents = 64;
  using All = std::map<std::string, HandedObject>;
  /// What a plan wants remembered from now on; nothing: forgotten.
  using Changes = std::map<std::string, std::optional<HandedObject>>;

  [[nodiscard]] const All& all() const { return all_; }
  [[nodiscard]] const HandedObject* find(const std::string& slot) const;

  /// `revision` is the incident store's by which the changes will be written down.
  void take(Changes changes, std::uint64_t revision);

  // What became of requests.
  void made(const std::string& slot);
  void removed(const std::string& slot);
  /// It may or may not have been made.
  void doubted(const std::string& slot, MonoTime comes_by);

  /// Takes in what a process before us has written; replaces everything.
  void load(All all) { all_ = std::move(all); }
  /// Until then requests of that process may still be carried out.
  void await_earlier(MonoTime come_by);

 private:
  All all_;
};

}  // namespace dhc
