#pragma once
#include <functional>
#include <memory>
#include <stop_token>

namespace dhc {

/// SIGTERM and SIGINT stop the program: the first asks, the second leaves at once, and what has not stopped 5 s after
/// it was asked (by a signal or by code) is left behind with exit code 1. SIGPIPE is ignored. Make one in main before
/// any thread starts, so that all threads inherit the mask, and keep it until the end.
class Signals {
 public:
  /// With `hangup`, SIGHUP calls it, on a thread of its own, and ends nothing: several while it runs are one; without,
  /// it ends the program at once, as the terminal's end should.
  explicit Signals(std::function<void()> hangup = {});
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Asked to stop when this says so.
  [[nodiscard]] std::stop_token token() const;

  /// Stops as a signal would.
  void request_stop();

  /// True if a signal, not code, asked first.
  [[nodiscard]] bool signalled() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dhc
