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

void Watcher::run(const std::stop_token& stop) {
  WatchSession session(target_);
  while (true) {
    const auto step = session.next(calls_.clock(), chance());
    publish(session, false);
    if (const auto* const request = std::get_if<SendList>(&step)) {
      list(request->request, session, stop);
    } else if (const auto* const opened = std::get_if<OpenStream>(&step)) {
      stream(opened->request, session, stop);
    } else if (const auto* const wait = std::get_if<WaitFor>(&step)) {
      pause(wait->duration, stop);
    }
    if (stop.stop_requested()) session.stop();
    publish(session, true);
    if (stop.stop_requested()) return;
  }
}

void Watcher::list(const Request& request, WatchSession& session, const std::stop_token& stop) {
  const auto sent = calls_.clock();
  const auto answer = unless_stopping(client_->call(request, stop), stop);
  if (answer && calls_.answered) calls_.answered(*answer, sent);
  session.list_answered(answer, calls_.clock(), chance(), out_);
  hand_over(stop);
}

void Watcher::stream(const Request& request, WatchSession& session, const std::stop_token& stop) {
  const auto sink = [&](std::string_view bytes) {
    const bool go_on = session.feed(bytes, calls_.clock(), out_);
    hand_over(stop);
    publish(session, false);
    return go_on && !stop.stop_requested();
  };
  const auto answer = unless_stopping(client_->stream(request, sink, stop), stop);
  session.stream_ended(answer, calls_.clock(), chance(), out_);
  hand_over(stop);
}

void Watcher::pause(Millis time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  (void)stopped_.wait_for(lock, stop, time, [] { return false; });
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
