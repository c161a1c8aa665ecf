#include "simulator/api/naming.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/answer.h"

namespace dhc::sim {
namespace {

constexpr std::size_t kLongestName = 63;
constexpr std::size_t kLongestDomain = 253;
constexpr std::size_t kAllAnnotations = 256UL * 1024;

bool is_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !is_alnum(name.front()) || !is_alnum(name.back())) return false;
  return std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_domain(std::string_view domain) {
  if (domain.empty() || domain.size() > kLongestDomain || !is_alnum(domain.front()) || !is_alnum(domain.back())) {
    return false;
  }
  return std::ranges::all_of(domain,
                             [](char c) { return (is_alnum(c) && (c < 'A' || c > 'Z')) || c == '-' || c == '.'; });
}

Json invalid_value(std::string_view value, std::string_view why, std::string_view at) {
  return cause("FieldValueInvalid", fmt::format("Invalid value: \"{}\": {}", value, why), at);
}

constexpr auto kNameRule =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr auto kValueRule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

}  // namespace

bool is_qualified_name(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return is_name(key);
  return is_domain(key.substr(0, slash)) && is_name(key.substr(slash + 1));
}

bool is_label_value(std::string_view value) { return value.empty() || is_name(value); }

void check_metadata(const Json& object, Json& causes) {
  if (const Json* labels = field(object, {"metadata", "labels"}); labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) {
      if (!is_qualified_name(key)) causes.push_back(invalid_value(key, kNameRule, "metadata.labels"));
      const auto words = value.is_string() ? value.get<std::string>() : value.dump();
      if (!is_label_value(words)) causes.push_back(invalid_value(words, kValueRule, "metadata.labels"));
    }
  }
  std::size_t size = 0;
  if (const Json* notes = field(object, {"metadata", "annotations"}); notes != nullptr && notes->is_object()) {
    for (const auto& [key, value] : notes->items()) {
      if (!is_qualified_name(key)) causes.push_back(invalid_value(key, kNameRule, "metadata.annotations"));
      size += key.size() + (value.is_string() ? value.get<std::string>().size() : 0);
    }
  }
  if (size > kAllAnnotations) {
    causes.push_back(cause("FieldValueTooLong", "Too long: may not be more than 262144 bytes", "metadata.annotations"));
  }
}

void check_taint(const Json& taint, const std::string& at, Json& causes) {
  const auto key = text(taint, {"key"});
  if (key.empty()) {
    causes.push_back(cause("FieldValueRequired", "Required value", at + ".key"));
  } else if (!is_qualified_name(key)) {
    causes.push_back(invalid_value(key, kNameRule, at + ".key"));
  }
  const auto value = text(taint, {"value"});
  if (!is_label_value(value)) causes.push_back(invalid_value(value, kValueRule, at + ".value"));
}

}  // namespace dhc::sim
