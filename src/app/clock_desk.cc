#include "app/clock_desk.h"

#include <utility>

#include <fmt/format.h>

#include "app/clock.h"

namespace dhc {

namespace {
/// Of our clock. What is less is a correction.
constexpr Millis kStep = std::chrono::minutes(1);
}  // namespace

ClockDesk::ClockDesk(Tell tell, StatusStore& status_store, Metrics& metrics, Log& log)
    : tell_(std::move(tell)), status_store_(status_store), metrics_(metrics), log_(log) {}

void ClockDesk::answered(const k8s::Response& answer, const Now& sent) {
  const auto date = k8s::header(answer, "date");
  if (!date) return;
  const std::lock_guard lock(mutex_);
  clock_.answered(*date, sent.wall, wall_now());
  const auto ahead = clock_.ahead();
  if (!ahead) return;
  status_store_.server_ahead(*ahead);
  metrics_.server_ahead(*ahead);
  const bool is_much = std::chrono::abs(*ahead) > k8s::kMuchAhead;
  const auto seconds = fmt::format("{:.1f}", std::chrono::duration<double>(*ahead).count());
  if (is_much && !is_much_) {
    log_.warn("the API server's clock and ours are apart: synchronize this node's or the server's (NTP)",
              {{"serverAheadSeconds", seconds}});
  } else if (!is_much && is_much_) {
    log_.info("the API server's clock and ours agree again", {{"serverAheadSeconds", seconds}});
  }
  is_much_ = is_much;
  // After a step of ours that the server agrees with the difference is the same, and nobody would know that it agrees.
  const auto offset = std::chrono::duration_cast<Millis>(sent.wall.time_since_epoch()) - sent.mono.time_since_epoch();
  const bool is_set = offset_ && std::chrono::abs(offset - *offset_) > kStep;
  const auto news = clock_.news();
  if (!offset_) offset_ = offset;
  if (!news && !is_set) return;
  const auto said = news.value_or(k8s::relevant_ahead(*ahead));
  if (!tell_(said)) return;
  clock_.take(said);
  offset_ = offset;
}

}  // namespace dhc
