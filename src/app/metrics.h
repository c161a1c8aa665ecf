#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/controller.h"
#include "app/message.h"
#include "domain/contract/verdict.h"
#include "k8s-client/protocol/watch_status.h"

namespace dhc {

/// Every number that we show; names and labels are documented in docs/metrics.md. What a cluster contains makes no more
/// than a bounded number of series: policies, drivers and resources, and nodes only while they have bad devices.
/// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// How long a step took.
  void show(const Measured& measured);

  /// After a turn.
  void show(const ControllerStats& stats, const std::vector<Verdict>& verdicts);

  /// One action and what became of it: `ok` or the error's kind.
  void count(const Outcome& outcome);

  /// From the oldest message of a turn received to an eviction of that turn handed to the transport.
  void reaction(std::chrono::duration<double> time);

  /// A kind's watch as it is at `now`; its totals only grow.
  void show(const k8s::WatchStatus& status, MonoTime now);

  /// How far the API server's clock is ahead of ours.
  void server_ahead(Millis ahead);

  void policy_reloaded(bool accepted);

  /// Whether we lead, or there is no election.
  void leading(bool leads);

  /// Whether a recording is being written.
  void recording(bool runs);
  /// How many bytes it has, which only grow.
  void recorded(std::int64_t bytes);

  /// What became of an event for the webhook: a word of WebhookEnd.
  void webhook(std::string_view outcome);

  /// Text exposition format 0.0.4.
  [[nodiscard]] std::string text() const;

 private:
  void show(const LossFigures& losses);
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace dhc
