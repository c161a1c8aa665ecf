#include "app/live/overview_log.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/json_text.h"

namespace dhc {

namespace {
/// A browser that has lost the stream comes back after so many milliseconds.
constexpr int kRetry = 1000;

void append_key(std::string& out, const std::string& key) { out += json_text(nlohmann::ordered_json(key)); }
}  // namespace

std::string server_sent_event(std::string_view event, std::string_view id, std::string_view data) {
  return fmt::format("event: {}\n{}retry: {}\ndata: {}\n\n", event,
                     id.empty() ? std::string() : fmt::format("id: {}\n", id), kRetry, data);
}

std::int64_t epoch_millis(WallTime at) { return std::chrono::floor<Millis>(at.time_since_epoch()).count(); }

bool OverviewLog::take(Part part, Overview now, std::string_view some) {
  const auto next = version_ + 1;
  bool is_news = parts_.insert(part).second;
  // Both are sorted: one walk over them, and not a search for each of thousands.
  auto at = entries_.begin();
  const auto leave_up_to = [&](const std::string* key) {
    while (at != entries_.end() && (key == nullptr || at->first < *key)) {
      const bool is_left_out = !some.empty() && at->first.starts_with(some);
      if (at->second.part != part || is_left_out) {
        ++at;
        continue;
      }
      version_ = next;
      note_gone(at->first);
      is_news = true;
      at = entries_.erase(at);
    }
  };
  for (auto& [key, text] : now) {
    leave_up_to(&key);
    const bool is_known = at != entries_.end() && at->first == key;
    if (!is_known) at = entries_.emplace_hint(at, key, Entry{});
    auto& entry = at->second;
    ++at;
    if (is_known && entry.text == text) continue;
    entry = {.text = std::move(text), .version = next, .part = part};
    is_news = true;
    if (const auto was = gone_.find(key); was != gone_.end()) {
      const auto then = gone_in_.find(was->second);
      then->second.erase(key);
      if (then->second.empty()) gone_in_.erase(then);
      gone_.erase(was);
    }
  }
  leave_up_to(nullptr);
  if (is_news) version_ = next;
  while (gone_.size() > kMostGone) {
    const auto oldest = gone_in_.begin();
    for (const auto& key : oldest->second) gone_.erase(key);
    forgotten_ = oldest->first;
    gone_in_.erase(oldest);
  }
  return is_news;
}

void OverviewLog::note_gone(const std::string& key) {
  gone_[key] = version_;
  gone_in_[version_].insert(key);
}

/// None: the place is of no use here.
std::optional<std::uint64_t> OverviewLog::version_of(std::string_view place) const {
  const auto dot = place.rfind('.');
  if (dot == std::string_view::npos || place.substr(0, dot) != name_) return std::nullopt;
  const auto digits = place.substr(dot + 1);
  std::uint64_t version = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  if (version < forgotten_ || version > version_) return std::nullopt;
  return version;
}

std::optional<OverviewLog::Piece> OverviewLog::since(std::string_view place, const Now& now) const {
  if (!is_whole()) return std::nullopt;
  const auto from = version_of(place);
  if (from == version_) return std::nullopt;
  std::string data = fmt::format(R"({{"now":{},"set":{{)", epoch_millis(now.wall));
  bool is_first = true;
  const auto separate = [&] {
    if (!std::exchange(is_first, false)) data += ',';
  };
  for (const auto& [key, entry] : entries_) {
    if (from && entry.version <= *from) continue;
    separate();
    append_key(data, key);
    data += ':';
    data += entry.text;
  }
  data += R"(},"gone":[)";
  is_first = true;
  if (from) {
    for (auto at = gone_in_.upper_bound(*from); at != gone_in_.end(); ++at) {
      for (const auto& key : at->second) {
        separate();
        append_key(data, key);
      }
    }
  }
  data += "]}";
  Piece piece{.text = {}, .place = fmt::format("{}.{}", name_, version_)};
  piece.text = server_sent_event(from ? "change" : "whole", piece.place, data);
  return piece;
}

}  // namespace dhc
