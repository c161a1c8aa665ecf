#include "k8s-client/protocol/watch_session.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace dhc::k8s {

WatchSession::WatchSession(const WatchTarget& target)
    : decoder_(target.kind, target.kept), proto_decoder_(target.kind, target.kept), machine_(target) {}

WatchStep WatchSession::next(const Now& now, double chance) {
  // The unfinished event of a stream that was cut comes again in the next one.
  lines_.reset();
  frames_.reset();
  format_.reset();
  return machine_.next(now, chance);
}

bool WatchSession::feed(std::string_view bytes, const Now& now, std::vector<Delivery>& out) {
  if (bytes.empty()) return true;
  // The bytes themselves say which it is, whatever a proxy makes of the headers: the length of a frame that we read
  // begins with a zero byte, JSON never does.
  if (!format_) format_ = bytes.front() == '\0' ? WireFormat::Protobuf : WireFormat::Json;
  machine_.count_bytes(bytes.size(), *format_);
  return *format_ == WireFormat::Protobuf ? feed_frames(bytes, now, out) : feed_lines(bytes, now, out);
}

bool WatchSession::feed_frames(std::string_view bytes, const Now& now, std::vector<Delivery>& out) {
  bool go_on = true;
  const bool whole = frames_.feed(bytes, [&](std::string_view frame) {
    if (go_on) go_on = machine_.event(proto_decoder_.decode_event(frame), now, out);
  });
  if (go_on && !whole) return machine_.unfollowable(fmt::format("a frame of more than {} bytes", kMaxLineBytes));
  return go_on;
}

bool WatchSession::feed_lines(std::string_view bytes, const Now& now, std::vector<Delivery>& out) {
  bool go_on = true;
  const auto line = [&](std::string_view text) {
    if (go_on && !text.empty()) go_on = machine_.event(decoder_.decode_event(text), now, out);
  };
  const auto too_long = [&] {
    BadObject bad;
    bad.why = fmt::format("a line of more than {} bytes", kMaxLineBytes);
    if (go_on) go_on = machine_.event(WatchEvent{.resource_version = {}, .what = std::move(bad)}, now, out);
  };
  lines_.feed(bytes, line, too_long);
  return go_on;
}

void WatchSession::stream_ended(const Result<Response>& answer, const Now& now, double chance,
                                std::vector<Delivery>& out) {
  machine_.ended(answer ? std::nullopt : std::optional(answer.error()), now, chance, out);
}

void WatchSession::list_answered(const Result<Response>& answer, const Now& now, double chance,
                                 std::vector<Delivery>& out) {
  if (!answer) return machine_.ended(answer.error(), now, chance, out);
  const bool protobuf = is_protobuf(answer->body);
  machine_.count_bytes(answer->body.size(), protobuf ? WireFormat::Protobuf : WireFormat::Json);
  auto page = protobuf ? proto_decoder_.decode_list(answer->body) : decoder_.decode_list(answer->body);
  if (!page) return machine_.ended(page.error(), now, chance, out);
  machine_.page(std::move(*page), now, chance, out);
}

}  // namespace dhc::k8s
