#include "domain/condition_text.h"

#include "base/rfc3339.h"

namespace dhc {

namespace {
constexpr std::string_view kSince = " unhealthy since ";
constexpr std::size_t kSaidLimit = 300;
constexpr std::size_t kStampLength = 20;  // 2026-11-20T18:23:16Z

/// Hostile text on one line: control characters become spaces, long text is cut before a broken UTF-8 sequence.
std::string tame(std::string_view text) {
  std::string out(text.substr(0, kSaidLimit));
  if (text.size() > kSaidLimit) {
    while (!out.empty() && (static_cast<unsigned char>(text[out.size()]) & 0xC0U) == 0x80U) out.pop_back();
    out += "...";
  }
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}
}  // namespace

std::string condition_message(const std::vector<ConditionLine>& lines) {
  std::string text;
  for (const auto& line : lines) {
    if (!text.empty()) text += '\n';
    text += line.device;
    text += kSince;
    text += format_rfc3339(line.since);
    text += " (policy " + line.policy + ")";
    if (!line.said.empty()) text += ": " + tame(line.said);
    text += "; next: " + line.next;
  }
  return text;
}

std::optional<WallTime> since_in_condition(std::string_view message, std::string_view device) {
  while (!message.empty()) {
    const auto end = message.find('\n');
    const std::string_view line = message.substr(0, end);
    if (line.starts_with(device) && line.substr(device.size()).starts_with(kSince)) {
      return parse_rfc3339(line.substr(device.size() + kSince.size(), kStampLength));
    }
    if (end == std::string_view::npos) break;
    message.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace dhc
