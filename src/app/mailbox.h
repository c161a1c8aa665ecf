#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "app/clock.h"

namespace dhc {

/// A bounded queue between threads: it pushes back when it is full, and every wait ends with a stop. Thread-safe.
template <class T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}

  /// Waits for room. False if stopped first: the item is then lost.
  bool push(T item, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!room_.wait(lock, stop, [this] { return items_.size() < capacity_; })) return false;
    items_.push_back(std::move(item));
    lock.unlock();
    filled_.notify_one();
    return true;
  }

  /// Does not wait. False if full: the item is untouched.
  bool try_push(T& item) {
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
    return true;
  }

  /// Ends the wait of `pop_batch` that is under way, or else the next one, although there is no item.
  void nudge() {
    {
      const std::lock_guard lock(mutex_);
      nudged_ = true;
    }
    filled_.notify_all();
  }

  /// Waits for at least one item until `deadline`, then takes all that are there, at most `limit`. Empty at the
  /// deadline, after a nudge or when stopped.
  [[nodiscard]] std::vector<T> pop_batch(std::size_t limit, MonoTime deadline, const std::stop_token& stop) {
    std::vector<T> batch;
    std::unique_lock lock(mutex_);
    (void)filled_.wait_until(lock, stop, steady_at(deadline), [this] { return nudged_ || !items_.empty(); });
    nudged_ = false;
    while (!items_.empty() && batch.size() < limit && !stop.stop_requested()) {
      batch.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    lock.unlock();
    room_.notify_all();
    return batch;
  }

  /// All that is there, without waiting.
  [[nodiscard]] std::vector<T> take_all() {
    return take_while([](const T&) { return true; });
  }

  /// The items at the front for which this holds, without waiting.
  template <class Holds>
  [[nodiscard]] std::vector<T> take_while(Holds holds) {
    std::vector<T> taken;
    {
      const std::lock_guard lock(mutex_);
      const auto end = std::find_if_not(items_.begin(), items_.end(), holds);
      taken.assign(std::make_move_iterator(items_.begin()), std::make_move_iterator(end));
      items_.erase(items_.begin(), end);
    }
    room_.notify_all();
    return taken;
  }

  /// Waits for one item; nothing when stopped.
  [[nodiscard]] std::optional<T> pop(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    (void)filled_.wait(lock, stop, [this] { return !items_.empty(); });
    if (stop.stop_requested() || items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    lock.unlock();
    room_.notify_all();
    return item;
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable_any filled_;
  std::condition_variable_any room_;
  std::deque<T> items_;
  bool nudged_ = false;
};

}  // namespace dhc
