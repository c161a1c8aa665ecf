#include "app/live/live_feed.h"

#include <utility>

#include <fmt/format.h>

#include "app/clock.h"

namespace dhc {

namespace {
/// A reader that has heard nothing for so long hears that the process lives, and when the loop has last turned.
constexpr Seconds kBeat{5};

std::string beat_of(const StatusStore& status_store, const Now& now) {
  const auto age = now.mono - status_store.facts().last_turn;
  return server_sent_event("beat", {},
                           fmt::format(R"({{"now":{},"lastTurnSeconds":{}}})", epoch_millis(now.wall),
                                       std::chrono::duration_cast<Seconds>(age).count()));
}
}  // namespace

/// One stream's place in the log.
class LiveFeed::Reader {
 public:
  Reader(LiveFeed& feed, std::string_view place) : feed_(feed), place_(place) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    const std::lock_guard lock(feed_.mutex_);
    feed_.bells_.erase(this);
    if (feed_.bells_.empty()) feed_.left_at_ = mono_now();
  }

  StreamPiece next() {
    const Now now = feed_.now();
    const std::lock_guard lock(feed_.mutex_);
    if (feed_.closed_) return {.text = server_sent_event("end", {}, "{}"), .last = true};
    if (auto piece = feed_.log_ ? feed_.log_->since(place_, now) : std::nullopt) {
      place_ = std::move(piece->place);
      spoken_at_ = now.mono;
      return {.text = std::move(piece->text)};
    }
    if (now.mono - spoken_at_ < kBeat) return {};
    spoken_at_ = now.mono;
    return {.text = beat_of(feed_.status_store_, now)};
  }

 private:
  LiveFeed& feed_;
  std::string place_;
  MonoTime spoken_at_ = mono_now();
};

std::optional<std::uint64_t> LiveFeed::wanted() {
  const std::lock_guard lock(mutex_);
  if (left_at_ && mono_now() - *left_at_ >= kLinger) log_.reset();
  return log_ ? std::optional(term_) : std::nullopt;
}

void LiveFeed::show(OverviewLog::Part part, Overview overview, std::string_view some) {
  const std::lock_guard lock(mutex_);
  if (log_ && log_->take(part, std::move(overview), some)) ring();
}

void LiveFeed::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  ring();
}

Now LiveFeed::now() const { return {.mono = mono_now(), .wall = wall_ ? wall_() : wall_now()}; }

void LiveFeed::ring() {
  for (const auto& [reader, bell] : bells_) bell();
}

std::optional<StreamReader> LiveFeed::open(std::string_view place, std::function<void()> bell) {
  bool is_first = false;
  auto reader = std::make_shared<Reader>(*this, place);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;  // the reader's end takes the lock after this block
    is_first = !log_;
    if (is_first) {
      ++term_;
      log_.emplace(fmt::format("{}-{}", epoch_millis(read_now().wall), term_));
    }
    bells_.emplace(reader.get(), std::move(bell));
    left_at_.reset();
  }
  if (is_first) first_reader_();
  return [reader] { return reader->next(); };
}

}  // namespace dhc
