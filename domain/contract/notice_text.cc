#include "domain/contract/notice_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {

using NoticeJson = nlohmann::ordered_json;

constexpr std::int64_t kNoticeVersion = 1;
constexpr std::string_view kActionEvict = "evict";
constexpr std::string_view kActionNone = "none";
constexpr std::string_view kActionPeer = "peer";
constexpr std::string_view kExitSafe = "safe";
constexpr std::string_view kDoneAt = "done:";
constexpr std::string_view kExtendUntil = "extend-until:";
constexpr const char* kAlso = "also";
// What JSON escapes is doubled at the most: quotes and backslashes. The rest of the line takes less than 400 bytes, but
// for the other devices.
constexpr std::size_t kNoticeDevice = 400;
constexpr std::size_t kNoticeWord = 63;
constexpr std::size_t kNoticeMessage = 260;
constexpr std::size_t kNoticePeer = 253;

/// In a range that can be counted on from: the number may be anybody's.
std::int64_t count_in(const nlohmann::json& json, const char* key) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto* found = json_field(json, {key});
  if (found == nullptr || !found->is_number_integer()) return 0;
  return std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, kMost);
}

std::string_view action_of(const Notice& notice) {
  if (notice.evict) return kActionEvict;
  return notice.peer.empty() ? kActionNone : kActionPeer;
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The line with the first of the other devices, as far as it has room.
std::string with_others(NoticeJson json, const std::vector<NoticedDevice>& also) {
  auto text = json_text(json);
  for (std::size_t i = 0; i < std::min(also.size(), kMostAlso); ++i) {
    json[kAlso].push_back({{"device", printable_cut(also[i].device, kNoticeDevice)},
                           {"container", printable_cut(also[i].container, kNoticeWord)}});
    auto longer = json_text(json);
    if (longer.size() > kLongestNotice) break;
    text = std::move(longer);
  }
  return text;
}

std::vector<NoticedDevice> others_in(const nlohmann::json& json) {
  std::vector<NoticedDevice> also;
  for (const auto& one : json_list(json, {kAlso})) {
    if (also.size() == kMostAlso) break;
    also.push_back({.device = json_string(one, {"device"}), .container = json_string(one, {"container"})});
  }
  return also;
}

}  // namespace

std::string notice_text(const Notice& notice) {
  NoticeJson json = {{"v", kNoticeVersion},
                     {"n", notice.number},
                     {"action", action_of(notice)},
                     {"device", printable_cut(notice.device, kNoticeDevice)},
                     {"container", printable_cut(notice.container, kNoticeWord)},
                     {"reason", notice.reason},
                     {"message", printable_cut(notice.message, kNoticeMessage)},
                     {"at", format_rfc3339(notice.at)}};
  const bool is_peer = action_of(notice) == kActionPeer;
  if (notice.deadline && (notice.evict || is_peer)) json["deadline"] = format_rfc3339(*notice.deadline);
  if (is_peer) json["pod"] = printable_cut(notice.peer, kNoticePeer);
  if (notice.evict) {
    json["retry"] = notice.retry;
    json["exit"] = notice.exit_is_safe ? kExitSafe : std::string_view("unsafe");
    json["restarts"] = notice.restarts;
    if (!notice.gang.empty()) json["gang"] = printable_cut(notice.gang, kNoticePeer);
    if (!notice.gang.empty() && !notice.with.empty()) json["pod"] = printable_cut(notice.with, kNoticePeer);
    return with_others(std::move(json), notice.also);
  }
  return json_text(json);
}

std::optional<Notice> read_notice(std::string_view text) {
  if (text.size() > kLongestNotice) return std::nullopt;
  const auto json = read_json<nlohmann::json>(text);
  const auto at = parse_rfc3339(json_string(json, {"at"}));
  const auto action = json_string(json, {"action"});
  if (count_in(json, "v") != kNoticeVersion || !at) return std::nullopt;
  const auto peer = action == kActionPeer ? json_string(json, {"pod"}) : std::string();
  if (action != kActionEvict && action != kActionNone && peer.empty()) return std::nullopt;
  Notice notice{.evict = action == kActionEvict,
                .peer = peer,
                .number = count_in(json, "n"),
                .device = json_string(json, {"device"}),
                .container = json_string(json, {"container"}),
                .reason = json_string(json, {"reason"}),
                .message = json_string(json, {"message"}),
                .at = *at,
                .retry = json_string(json, {"retry"}),
                .exit_is_safe = json_string(json, {"exit"}) == kExitSafe,
                .restarts = count_in(json, "restarts"),
                .gang = action == kActionEvict ? json_string(json, {"gang"}) : std::string(),
                .with = action == kActionEvict ? json_string(json, {"pod"}) : std::string(),
                .also = others_in(json)};
  if (action != kActionNone) notice.deadline = parse_rfc3339(json_string(json, {"deadline"}));
  return notice;
}

std::expected<NoticeAnswer, std::string> read_answer(std::string_view text) {
  constexpr std::size_t kLongestShown = 60;
  const auto said = without_blanks(text);
  if (said == "done") return NoticeAnswer{.kind = NoticeAnswer::Kind::Done};
  for (const auto& [word, kind] :
       {std::pair(kDoneAt, NoticeAnswer::Kind::Done), std::pair(kExtendUntil, NoticeAnswer::Kind::ExtendUntil)}) {
    if (!said.starts_with(word)) continue;
    const auto time = parse_rfc3339(without_blanks(said.substr(word.size())));
    if (time) return NoticeAnswer{.kind = kind, .time = time};
  }
  return std::unexpected(fmt::format(
      "\"{}\" is no answer; write done, done: TIME or extend-until: TIME, with a time such as 2026-11-20T18:23:16Z",
      printable_cut(said, kLongestShown)));
}

}  // namespace dhc
