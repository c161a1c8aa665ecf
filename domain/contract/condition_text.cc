#include "domain/contract/condition_text.h"

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
/// The words between a device and the time, by who says that it is bad.
struct SourceWords {
  SignalSource source;
  std::string_view words;
};
constexpr std::array<SourceWords, 3> kSourceWords = {{{SignalSource::Report, " unhealthy since "},
                                                      {SignalSource::Claim, " reported by its claim since "},
                                                      {SignalSource::Taint, " tainted by its driver since "}}};
constexpr std::string_view kHealthySince = " healthy since ";
constexpr std::string_view kOnProbation = ", on probation until ";
constexpr std::string_view kNext = "; next: ";
constexpr std::string_view kDue = "eviction, due at ";
constexpr std::string_view kNoticed = ", noticed at ";
constexpr std::string_view kBetween = " || ";
constexpr std::string_view kAnd = "and ";
constexpr std::string_view kMore = " more devices";
constexpr std::size_t kSaidLimit = 300;
constexpr std::size_t kNextLimit = 200;
constexpr std::size_t kNameLimit = 1024;
constexpr std::size_t kTailRoom = 64;     // for the number of those left out
constexpr std::size_t kStampLength = 20;  // 2026-11-20T18:23:16Z

/// Hostile text that can be taken neither for the end of a line nor for one of ours.
std::string tame(std::string_view text, std::size_t limit) {
  std::string out = printable_cut(text, limit);
  std::ranges::replace(out, '|', '/');
  return out;
}

/// What somebody wrote into a pause or an annotation must not read as what we say last.
std::string tame_next(std::string_view next) {
  std::string out = tame(next, kNextLimit);
  for (auto at = out.find(kNext); at != std::string::npos; at = out.find(kNext, at)) out[at] = ',';
  return out;
}

/// A device's name as it stands in a message: without spaces, so that the first words after it are ours.
std::string tame_name(std::string_view device) {
  std::string out = printable_cut(device, kNameLimit);
  std::ranges::replace(out, '|', '/');
  std::ranges::replace(out, ' ', '_');
  return out;
}

std::string line_text(const ConditionLine& line) {
  std::string text = tame_name(line.device);
  text += std::ranges::find(kSourceWords, line.source, &SourceWords::source)->words;
  text += format_rfc3339(line.since);
  text += " (policy " + line.policy + ")";
  if (!line.said.empty()) text += ": " + tame(line.said, kSaidLimit);
  text += std::string(kNext) + tame_next(line.next);
  return text;
}

struct Joined {
  std::string text;
  std::size_t named = 0;
};

/// The parts in their order as far as there is room, and the number of those left out.
template <class Line, class Text>
Joined join(const std::vector<Line>& lines, Text text_of) {
  std::string text;
  std::size_t named = 0;
  for (const auto& line : lines) {
    const std::string part = text_of(line);
    const std::size_t room = named + 1 == lines.size() ? 0 : kTailRoom;
    if (text.size() + kBetween.size() + part.size() + room > kLongestCondition) break;
    if (!text.empty()) text += kBetween;
    text += part;
    ++named;
  }
  if (named == lines.size()) return {std::move(text), named};
  if (!text.empty()) text += kBetween;
  return {text + std::string(kAnd) + std::to_string(lines.size() - named) + std::string(kMore), named};
}

/// Calls `take` with each part of the message.
template <class Take>
void each_part(std::string_view message, Take take) {
  while (!message.empty()) {
    const auto end = message.find(kBetween);
    take(message.substr(0, end));
    if (end == std::string_view::npos) return;
    message.remove_prefix(end + kBetween.size());
  }
}

std::optional<WallTime> noticed_in_next(std::string_view next) {
  if (!next.starts_with(kDue)) return std::nullopt;
  next.remove_prefix(std::min(kDue.size() + kStampLength, next.size()));
  return next.starts_with(kNoticed) ? parse_rfc3339(next.substr(kNoticed.size(), kStampLength)) : std::nullopt;
}

/// The last of them is ours: what stands before it holds the driver's words.
std::optional<WallTime> noticed_in(std::string_view part) {
  const auto at = part.rfind(kNext);
  return at == std::string_view::npos ? std::nullopt : noticed_in_next(part.substr(at + kNext.size()));
}

/// The place of the first of them that says since when the pod has been told, earlier than others say; none says it:
/// their number.
std::size_t first_told(const std::vector<ConditionLine>& lines) {
  std::size_t first = lines.size();
  std::optional<WallTime> earliest;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto noticed = noticed_in_next(lines[i].next);
    if (!noticed || (earliest && *earliest <= *noticed)) continue;
    earliest = noticed;
    first = i;
  }
  return first;
}

}  // namespace

std::string next_eviction(WallTime due, std::optional<WallTime> noticed) {
  auto text = std::string(kDue) + format_rfc3339(due);
  return noticed ? text + std::string(kNoticed) + format_rfc3339(*noticed) : text;
}

std::string condition_message(const std::vector<ConditionLine>& lines) {
  auto joined = join(lines, line_text);
  if (joined.named == lines.size()) return std::move(joined.text);
  // Since when the pod has been told stands nowhere else: where not all have room, that line comes first.
  const auto first = first_told(lines);
  if (first == lines.size() || first < joined.named) return std::move(joined.text);
  auto reordered = lines;
  const auto told = reordered.begin() + static_cast<std::ptrdiff_t>(first);
  std::rotate(reordered.begin(), told, told + 1);
  return join(reordered, line_text).text;
}

std::string recovery_message(const std::vector<RecoveryLine>& lines) {
  const auto text_of = [](const RecoveryLine& line) {
    auto text = tame_name(line.device) + std::string(kHealthySince) + format_rfc3339(line.since);
    if (line.probation_until) text += std::string(kOnProbation) + format_rfc3339(*line.probation_until);
    return text;
  };
  return join(lines, text_of).text;
}

ConditionWords read_recovery(std::string_view message) {
  ConditionWords words;
  each_part(message, [&](std::string_view part) {
    const auto at = part.find(kHealthySince);
    if (at == std::string_view::npos) {
      words.cut = words.cut || (part.starts_with(kAnd) && part.ends_with(kMore));
      return;
    }
    const auto stamp = part.substr(at + kHealthySince.size(), kStampLength);
    words.devices.try_emplace(std::string(part.substr(0, at)), ConditionWords::Word{.since = parse_rfc3339(stamp)});
  });
  return words;
}

ConditionWords read_condition(std::string_view message) {
  ConditionWords words;
  each_part(message, [&](std::string_view part) {
    if (part.starts_with(kAnd) && part.ends_with(kMore)) {
      words.cut = true;
      return;
    }
    // The first of them is ours: what follows holds the driver's words.
    const auto* said =
        std::ranges::min_element(kSourceWords, {}, [&](const auto& one) { return part.find(one.words); });
    const auto at = part.find(said->words);
    if (at == std::string_view::npos) return;
    const auto stamp = part.substr(at + said->words.size(), kStampLength);
    words.devices.try_emplace(
        std::string(part.substr(0, at)),
        ConditionWords::Word{.since = parse_rfc3339(stamp), .source = said->source, .noticed = noticed_in(part)});
  });
  return words;
}

std::optional<WallTime> ConditionWords::noticed() const {
  std::optional<WallTime> first;
  for (const auto& [device, word] : devices) {
    if (word.noticed && (!first || *word.noticed < *first)) first = word.noticed;
  }
  return first;
}

const ConditionWords::Word* ConditionWords::find(std::string_view device) const {
  const auto found = devices.find(tame_name(device));
  return found == devices.end() ? nullptr : &found->second;
}

}  // namespace dhc
