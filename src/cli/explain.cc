#include "cli/explain.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "domain/contract/reasons.h"

namespace dhc::cli {

namespace {

std::string_view told_as(EventType type) {
  switch (type) {
    case EventType::None:
      return "no Event, see /verdicts";
    case EventType::Normal:
      return "Normal Event";
    case EventType::Warning:
      return "Warning Event";
  }
  return "";
}

std::string text_of(const ReasonInfo& info) {
  return fmt::format("{} ({})\n  {}\n  To do: {}\n", info.word, told_as(info.event), info.meaning, info.remedy);
}

std::string complaint(std::string_view word) {
  std::vector<std::string_view> known;
  std::ranges::transform(all_reasons(), std::back_inserter(known), &ReasonInfo::word);
  const auto near = nearest_word(word, known);
  return fmt::format(
      "error: '{}' is no reason of a verdict{}\n", word,
      near.empty() ? "; 'explain' without a word lists them all" : fmt::format(", did you mean '{}'?", near));
}

}  // namespace

Printed explain(const ExplainOptions& options) {
  Printed printed;
  const auto say = [&](const ReasonInfo& info) { printed.out += (printed.out.empty() ? "" : "\n") + text_of(info); };
  if (options.reasons.empty()) std::ranges::for_each(all_reasons(), say);
  for (const auto& word : options.reasons) {
    const auto found = std::ranges::find(all_reasons(), word, &ReasonInfo::word);
    if (found != all_reasons().end()) {
      say(*found);
    } else {
      printed.err += complaint(word);
      printed.code = 1;
    }
  }
  return printed;
}

}  // namespace dhc::cli
