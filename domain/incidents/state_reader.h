#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "domain/history/device_record.h"

namespace dhc {

/// Reads members of one JSON object that may be absent; a wrong type or an absurd value makes it bad.
class StateReader {
 public:
  explicit StateReader(const nlohmann::ordered_json& json) : json_(json) {}

  /// Cut and made printable: it may end in a log, an Event or an annotation.
  void text(const char* key, std::string& out);
  /// A name as it stands: it is compared with others.
  void name(const char* key, std::string& out);
  void name(const char* key, SharedText& out);
  void names(const char* key, std::vector<std::string>& out);
  void flag(const char* key, bool& out);
  void time(const char* key, WallTime& out);
  void time(const char* key, std::optional<WallTime>& out);
  void count(const char* key, std::int64_t& out);
  void amount(const char* key, double& out);
  /// A member that is an object, or null.
  [[nodiscard]] const nlohmann::ordered_json* object(const char* key);
  /// A list of objects that may be absent; `read` makes one entry of each.
  template <class T, class Read>
  void entries(const char* key, T& out, Read read) {
    const auto list = json_.find(key);
    if (list == json_.end()) return;
    if (!list->is_array() || list->size() > kMostEntries) return bad();
    for (const auto& item : *list) {
      if (!item.is_object()) return bad();
      StateReader part(item);
      auto entry = read(part);
      if (!part.good()) return bad();
      out.push_back(std::move(entry));
    }
  }
  [[nodiscard]] bool has(const char* key) const { return json_.contains(key); }
  [[nodiscard]] bool good() const { return good_; }
  void bad() { good_ = false; }

 private:
  static constexpr std::size_t kMostEntries = 100;
  const nlohmann::ordered_json* find(const char* key, nlohmann::ordered_json::value_t type);

  const nlohmann::ordered_json& json_;
  bool good_ = true;
};

/// No node's name.
inline constexpr std::string_view kNoNode = "<none>";

// what every version has written alike
[[nodiscard]] PastIncident read_past_incident(StateReader& part);
[[nodiscard]] OwnerLoss read_loss(StateReader& part);
[[nodiscard]] Acknowledged read_acknowledged(StateReader& reader);
[[nodiscard]] std::string_view word_of(Acknowledged how);
void read_host(CardIdentity& card, StateReader& reader);
/// `source`, `scope`, `place` and `device`; a key that is not whole is bad.
[[nodiscard]] DeviceKey read_key(StateReader& reader);

}  // namespace dhc
