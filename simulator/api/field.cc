#include "simulator/api/field.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "base/json_field.h"

namespace dhc::sim {

const Json* field(const Json& object, Path path) { return json_field(object, path); }

std::string text(const Json& object, Path path) { return json_string(object, path); }

std::int64_t number(const Json& object, Path path, std::int64_t otherwise) {
  const Json* found = field(object, path);
  if (found == nullptr) return otherwise;
  if (found->is_number()) return found->get<std::int64_t>();
  if (!found->is_string()) return otherwise;
  const auto& digits = found->get_ref<const std::string&>();
  std::int64_t value = otherwise;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::span<const Json> list(const Json& object, Path path) { return json_list(object, path); }

std::string ns_of(const Json& object) { return text(object, {"metadata", "namespace"}); }
std::string name_of(const Json& object) { return text(object, {"metadata", "name"}); }
std::string uid_of(const Json& object) { return text(object, {"metadata", "uid"}); }

bool is_deleting(const Json& object) { return field(object, {"metadata", "deletionTimestamp"}) != nullptr; }

std::string condition_status(const Json& object, std::string_view type) {
  for (const auto& condition : list(object, {"status", "conditions"})) {
    if (text(condition, {"type"}) == type) return text(condition, {"status"});
  }
  return {};
}

void set_condition(Json& object, std::string_view type, std::string_view status, std::string_view reason,
                   std::string_view message, const std::string& time) {
  Json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  Json* found = nullptr;
  for (auto& condition : conditions) {
    if (text(condition, {"type"}) == type) found = &condition;
  }
  if (found == nullptr) {
    conditions.push_back({{"type", type}});
    found = &conditions.back();
  }
  if (text(*found, {"status"}) != status) (*found)["lastTransitionTime"] = time;
  (*found)["status"] = status;
  if (reason.empty()) {
    found->erase("reason");
  } else {
    (*found)["reason"] = reason;
  }
  if (message.empty()) {
    found->erase("message");
  } else {
    (*found)["message"] = message;
  }
}

bool is_terminal(const Json& pod) {
  const auto phase = text(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

const Json* controller_of(const Json& object) {
  for (const auto& owner : list(object, {"metadata", "ownerReferences"})) {
    if (json_true(owner, {"controller"})) return &owner;
  }
  return nullptr;
}

}  // namespace dhc::sim
