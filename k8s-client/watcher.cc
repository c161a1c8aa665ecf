#include "k8s-client/watcher.h"

#include <utility>
#include <variant>

namespace dhc::k8s {
namespace {

constexpr Millis kShowAtLeast = Seconds(1);

/// A call that was given up though nobody asked this watcher to stop is an ordinary failure: the machine would take
/// Cancelled for the end of all.
Result<Response> unless_stopping(Result<Response> answer, const std::stop_token& stop) {
  if (!answer && answer.error().kind == ErrorKind::Cancelled && !stop.stop_requested()) {
    answer.error().kind = ErrorKind::Unavailable;
  }
  return answer;
}

}  // namespace

Watcher::Watcher(WatchTarget target, std::shared_ptr<const Client> client, WatcherCalls calls)
    : target_(std::move(target)),
      client_(std::move(client)),
      calls_(std::move(calls)),
      random_(std::random_device{}()),
      thread_([this](const std::stop_token& stop) noexcept { run(stop); }) {}

WatchStatus Watcher::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Watcher::doubt(std::string why) {
  {
    const std::lock_guard lock(mutex_);
    doubt_ = std::move(why);
  }
  interrupt();
}

void Watcher::list_afresh() {
  {
    const std::lock_guard lock(mutex_);
    afresh_ = true;
  }
  interrupt();
}

void Watcher::interrupt() {
  std::stop_source step(std::nostopstate);
  {
    const std::lock_guard lock(mutex_);
    // The list under way is what is wanted; ended, it would be asked for again only after a wait.
    if (is_listing_) return;
    step = step_;
  }
  step.request_stop();
}

/// From here on a wish ends this step; one that came before is told to the session before it is asked what to do.
std::stop_source Watcher::begin_step() {
  const std::lock_guard lock(mutex_);
  step_ = std::stop_source();
  return step_;
}

void Watcher::tell_wishes(WatchSession& session) {
  std::optional<std::string> why;
  bool afresh = false;
  {
    const std::lock_guard lock(mutex_);
    why = std::exchange(doubt_, std::nullopt);
    afresh = std::exchange(afresh_, false);
  }
  if (why) session.doubt(*std::move(why), calls_.clock(), out_);
  if (afresh) session.list_afresh(calls_.clock(), out_);
}

void Watcher::run(const std::stop_token& stop) {
  WatchSession session(target_);
  while (true) {
    auto ending = begin_step();
    const std::stop_callback both(stop, [&ending] { ending.request_stop(); });
    const Stops stops{.all = stop, .step = ending.get_token()};
    tell_wishes(session);
    hand_over(stop);
    const auto step = session.next(calls_.clock(), chance());
    publish(session, false);
    if (const auto* const request = std::get_if<SendList>(&step)) {
      list(request->request, session, stops);
    } else if (const auto* const opened = std::get_if<OpenStream>(&step)) {
      stream(opened->request, session, stops);
    } else if (const auto* const wait = std::get_if<WaitFor>(&step)) {
      pause(wait->duration, stops.step);
    }
    if (stop.stop_requested()) session.stop();
    publish(session, true);
    if (stop.stop_requested()) return;
  }
}

void Watcher::note_listing(bool is_listing) {
  const std::lock_guard lock(mutex_);
  is_listing_ = is_listing;
}

void Watcher::list(const Request& request, WatchSession& session, const Stops& stops) {
  const auto sent = calls_.clock();
  note_listing(true);
  const auto answer = unless_stopping(client_->call(request, stops.step), stops.all);
  note_listing(false);
  if (answer && calls_.answered) calls_.answered(*answer, sent);
  tell_wishes(session);
  session.list_answered(answer, calls_.clock(), chance(), out_);
  hand_over(stops.all);
}

void Watcher::stream(const Request& request, WatchSession& session, const Stops& stops) {
  const auto sink = [&](std::string_view bytes) {
    const bool go_on = session.feed(bytes, calls_.clock(), out_);
    hand_over(stops.all);
    publish(session, false);
    return go_on && !stops.step.stop_requested();
  };
  const auto answer = unless_stopping(client_->stream(request, sink, stops.step), stops.all);
  tell_wishes(session);
  session.stream_ended(answer, calls_.clock(), chance(), out_);
  hand_over(stops.all);
}

void Watcher::pause(Millis time, const std::stop_token& step) {
  std::unique_lock lock(mutex_);
  (void)stopped_.wait_for(lock, step, time, [] { return false; });
}

void Watcher::hand_over(const std::stop_token& stop) {
  for (auto& delivery : out_) {
    if (stop.stop_requested()) break;
    calls_.deliver(std::move(delivery));
  }
  out_.clear();
}

void Watcher::publish(const WatchSession& session, bool show_anyway) {
  auto status = session.status();
  const auto now = calls_.clock().mono;
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    changed = status.state != status_.state || status.synced != status_.synced;
    status_ = status;
  }
  if (!calls_.show || (!show_anyway && !changed && now - shown_at_ < kShowAtLeast)) return;
  shown_at_ = now;
  calls_.show(status);
}

double Watcher::chance() { return std::uniform_real_distribution<double>(0.0, 1.0)(random_); }

}  // namespace dhc::k8s
