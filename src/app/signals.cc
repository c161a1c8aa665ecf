#include "app/signals.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "app/clock.h"

namespace dhc {

namespace {
constexpr Seconds kStopPatience{5};
constexpr int kForever = -1;

sigset_t watched_signals(bool hangup) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (hangup) sigaddset(&set, SIGHUP);
  return set;
}

void ring(int bell) {
  const std::uint64_t one = 1;
  (void)!::write(bell, &one, sizeof one);
}
}  // namespace

struct Signals::Impl {
  sigset_t before{};
  int signals = -1;
  int bell = -1;
  std::stop_source source;
  std::atomic<bool> signalled = false;
  std::atomic<bool> done = false;
  std::function<void()> hangup;
  std::mutex mutex;
  std::condition_variable_any hung_up;
  bool is_hung_up = false;
  std::thread thread;
  std::jthread hangups;  // that may block, and whoever ends the program must not

  void watch();
  void take_signal(bool stopping);
  void pass_on(const std::stop_token& stop);
};

void Signals::Impl::pass_on(const std::stop_token& stop) {
  std::unique_lock lock(mutex);
  while (hung_up.wait(lock, stop, [&] { return is_hung_up; })) {
    is_hung_up = false;
    lock.unlock();
    hangup();
    lock.lock();
  }
}

void Signals::Impl::take_signal(bool stopping) {
  signalfd_siginfo got{};
  if (::read(signals, &got, sizeof got) != static_cast<ssize_t>(sizeof got)) return;
  if (got.ssi_signo == SIGHUP) {
    const std::lock_guard lock(mutex);
    is_hung_up = true;
    return hung_up.notify_one();
  }
  if (stopping) std::_Exit(128 + static_cast<int>(got.ssi_signo));
  signalled = true;
  source.request_stop();
}

void Signals::Impl::watch() {
  std::optional<MonoTime> deadline;
  while (!done) {
    std::array<pollfd, 2> both = {
        {{.fd = signals, .events = POLLIN, .revents = 0}, {.fd = bell, .events = POLLIN, .revents = 0}}};
    const int wait = deadline ? static_cast<int>(std::max(Millis(0), *deadline - mono_now()).count()) : kForever;
    (void)::poll(both.data(), both.size(), wait);
    if (both[0].revents != 0) take_signal(deadline.has_value());
    std::uint64_t count = 0;
    if (both[1].revents != 0) (void)!::read(bell, &count, sizeof count);
    if (!deadline && source.stop_requested()) deadline = mono_now() + kStopPatience;
    // Something did not stop: a half-dead process is worse than a hard end.
    if (!done && deadline && mono_now() >= *deadline) std::_Exit(1);
  }
}

Signals::Signals(std::function<void()> hangup) : impl_(std::make_unique<Impl>()) {
  const sigset_t set = watched_signals(hangup != nullptr);
  impl_->hangup = std::move(hangup);
  pthread_sigmask(SIG_BLOCK, &set, &impl_->before);
  std::signal(SIGPIPE, SIG_IGN);
  impl_->signals = ::signalfd(-1, &set, SFD_CLOEXEC);
  impl_->bell = ::eventfd(0, EFD_CLOEXEC);
  if (impl_->signals < 0 || impl_->bell < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  // First the one that can be joined without the other: the machine may refuse a thread.
  if (impl_->hangup)
    impl_->hangups = std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->pass_on(stop); });
  impl_->thread = std::thread([impl = impl_.get()] { impl->watch(); });
}

Signals::~Signals() {
  impl_->hangups = {};
  impl_->done = true;
  ring(impl_->bell);
  impl_->thread.join();
  ::close(impl_->signals);
  ::close(impl_->bell);
  pthread_sigmask(SIG_SETMASK, &impl_->before, nullptr);
}

std::stop_token Signals::token() const { return impl_->source.get_token(); }

void Signals::request_stop() {
  impl_->source.request_stop();
  ring(impl_->bell);
}

bool Signals::signalled() const { return impl_->signalled; }

}  // namespace dhc
