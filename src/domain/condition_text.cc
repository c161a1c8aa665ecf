#include "domain/condition_text.h"

#include <algorithm>

#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
constexpr std::string_view kSince = " unhealthy since ";
constexpr std::string_view kClaimSays = " reported by its claim since ";
constexpr std::string_view kBetween = " || ";
constexpr std::size_t kSaidLimit = 300;
constexpr std::size_t kStampLength = 20;  // 2026-11-20T18:23:16Z

/// Hostile text that can be taken neither for the end of a line nor for one of ours.
std::string tame(std::string_view text) {
  std::string out = printable_cut(text, kSaidLimit);
  std::ranges::replace(out, '|', '/');
  return out;
}

/// What the message says of `device` after `words`, or nothing.
std::optional<std::string_view> said_of(std::string_view message, std::string_view device, std::string_view words) {
  while (!message.empty()) {
    const auto end = message.find(kBetween);
    const std::string_view line = message.substr(0, end);
    if (line.starts_with(device) && line.substr(device.size()).starts_with(words)) {
      return line.substr(device.size() + words.size());
    }
    if (end == std::string_view::npos) break;
    message.remove_prefix(end + kBetween.size());
  }
  return std::nullopt;
}
}  // namespace

std::string condition_message(const std::vector<ConditionLine>& lines) {
  std::string text;
  for (const auto& line : lines) {
    if (!text.empty()) text += kBetween;
    text += line.device;
    text += line.by_claim ? kClaimSays : kSince;
    text += format_rfc3339(line.since);
    text += " (policy " + line.policy + ")";
    if (!line.said.empty()) text += ": " + tame(line.said);
    text += "; next: " + line.next;
  }
  return text;
}

std::optional<WallTime> since_in_condition(std::string_view message, std::string_view device) {
  const auto rest = said_of(message, device, kSince);
  return rest ? parse_rfc3339(rest->substr(0, kStampLength)) : std::nullopt;
}

bool condition_names(std::string_view message, std::string_view device) {
  return said_of(message, device, kSince) || said_of(message, device, kClaimSays);
}

bool condition_is_by_claim(std::string_view message, std::string_view device) {
  return said_of(message, device, kClaimSays).has_value();
}

}  // namespace dhc
