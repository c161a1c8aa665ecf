#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/now.h"

namespace dhc {

/// What came of one request.
struct WebhookAnswer {
  enum class Means : std::uint8_t {
    Delivered,
    Later,    ///< Tried again; so many times that an event is to blame, not the receiver.
    Refused,  ///< Not tried again: it would be the same.
    Nothing,  ///< Nobody answered, or it could not be signed: tried again as long as it is news.
  };
  Means means = Means::Nothing;
  Millis wait = Millis(0);  ///< The receiver's Retry-After.
};

/// 2xx is delivered; 408, 425, 429 and 5xx are tried again; anything else, redirects too, is not.
[[nodiscard]] WebhookAnswer::Means meaning_of_status(unsigned status);

/// What became of an event.
enum class WebhookEnd : std::uint8_t { Delivered, Refused, GivenUp, Dropped };

/// The word of metrics: `delivered`, `refused`, `gave_up`, `dropped`.
[[nodiscard]] std::string_view to_string(WebhookEnd end);

/// Events that wait to be sent: in their order, one at a time, at most so many requests in any minute. What fails is
/// tried again after 1 s, then after twice as long each time up to a minute, or when the receiver says.
class WebhookQueue {
 public:
  static constexpr std::size_t kMost = 256;
  /// Answers that ask for another try, after which an event is given up.
  static constexpr int kMostAnswers = 8;
  /// After which it is given up whatever the reason: no longer than a new leader tells it again.
  static constexpr Millis kLongest = std::chrono::hours(1);
  static constexpr Millis kLongestPause = Seconds(60);

  void set_rate(std::int64_t per_minute) { per_minute_ = per_minute; }

  /// False: the queue is full, and the event is dropped.
  [[nodiscard]] bool push(std::string body, MonoTime now);

  /// The event that may be sent now, or null. Valid until the next call that changes the queue.
  [[nodiscard]] const std::string* due(MonoTime now) const;
  /// When the first event may be sent; none: there is none.
  [[nodiscard]] std::optional<MonoTime> due_at() const;

  /// A request with it is on its way.
  void sent(MonoTime now);
  /// What the first event has come to; none: it will be tried again.
  [[nodiscard]] std::optional<WebhookEnd> answered(const WebhookAnswer& answer, MonoTime now);

  /// Another receiver: what the one before it did is no reason to wait.
  void begin_anew() {
    failures_ = 0;
    not_before_ = MonoTime::min();
  }

  /// Another address: what is on its way goes to the one before, whose answer says nothing of what waits.
  void redirect() { is_astray_ = std::exchange(under_way_, false) || is_astray_; }

  /// Nothing waits any more; the pause and the rate go on.
  void clear() {
    waiting_.clear();
    under_way_ = false;
  }
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::string body;
    MonoTime since;
    int answers = 0;  // that asked for another try
  };
  std::deque<Waiting> waiting_;
  std::deque<MonoTime> sent_;  // requests of the last minute
  std::int64_t per_minute_ = 30;
  bool under_way_ = false;  // the first of those that wait
  bool is_astray_ = false;  // a request is, to an address that is no longer ours
  int failures_ = 0;        // requests in a row, of whichever events
  MonoTime not_before_ = MonoTime::min();
};

}  // namespace dhc
