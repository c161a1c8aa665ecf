#pragma once
#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/handle_set.h"
#include "base/slim_vector.h"

namespace dhc::k8s {

/// A value that never changes, kept once for all that hold it. Holders may be on different threads. Made of nothing or
/// moved from, it has no value.
template <class T>
class SharedEntry {
 public:
  SharedEntry() = default;
  explicit SharedEntry(T value) : body_(new Body(std::move(value))) {}
  SharedEntry(const SharedEntry& other) noexcept : body_(other.body_) {
    if (body_ != nullptr) body_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  SharedEntry(SharedEntry&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  SharedEntry& operator=(SharedEntry other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~SharedEntry() {
    if (body_ != nullptr && body_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body_;
  }

  [[nodiscard]] bool has_value() const { return body_ != nullptr; }
  [[nodiscard]] const T& operator*() const { return body_->value; }
  /// Whether nobody else holds it.
  [[nodiscard]] bool is_last() const { return body_->holders.load(std::memory_order_acquire) == 1; }
  [[nodiscard]] bool is_same(const SharedEntry& other) const { return body_ == other.body_; }

 private:
  struct Body {
    explicit Body(T&& from) : value(std::move(from)) {}
    T value;
    std::atomic<std::uint32_t> holders{1};
  };
  template <class>
  friend class SharedOptional;
  template <class, class>
  friend class SharedEntries;
  Body* body_ = nullptr;
};

/// A value that many may have in common, or none, in a pointer's size: as std::optional, but it cannot be changed.
template <class T>
class SharedOptional {
 public:
  SharedOptional() = default;
  SharedOptional(T value) : entry_(std::move(value)) {}  // NOLINT(google-explicit-constructor): as std::optional
  SharedOptional(std::optional<T> value) {               // NOLINT(google-explicit-constructor): as std::optional
    if (value) entry_ = SharedEntry<T>(*std::move(value));
  }
  [[nodiscard]] bool has_value() const { return entry_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const T& operator*() const { return *entry_; }
  const T* operator->() const { return &*entry_; }
  operator std::optional<T>() const {  // NOLINT(google-explicit-constructor): as std::optional
    return has_value() ? std::optional<T>(*entry_) : std::nullopt;
  }
  [[nodiscard]] T value_or(T other) const { return has_value() ? *entry_ : std::move(other); }
  void reset() { entry_ = {}; }
  /// A copy that nobody else holds takes its place, to be changed at once.
  [[nodiscard]] T& edit() {
    entry_ = SharedEntry<T>(T(*entry_));
    return entry_.body_->value;
  }

  friend bool operator==(const SharedOptional& a, const SharedOptional& b) {
    if (!a || !b) return a.has_value() == b.has_value();
    return a.entry_.is_same(b.entry_) || *a == *b;
  }

 private:
  template <class, class>
  friend class SharedEntries;
  SharedEntry<T> entry_;
};

/// A list whose entries many lists have in common: each is kept once, and can be read, added and taken out, but not
/// changed. Compared by what it says.
template <class T>
class SharedList {
 public:
  using value_type = T;

  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    Iterator() = default;
    explicit Iterator(const SharedEntry<T>* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return &**at_; }
    reference operator[](difference_type n) const { return *at_[n]; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this - 1); }
    Iterator& operator+=(difference_type n) {
      at_ += n;
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
    friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
    friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
    friend auto operator<=>(const Iterator&, const Iterator&) = default;

   private:
    const SharedEntry<T>* at_ = nullptr;
  };
  using iterator = Iterator;
  using const_iterator = Iterator;

  SharedList() = default;
  SharedList(std::initializer_list<T> values) : entries_(values.begin(), values.end()) {}
  explicit SharedList(std::vector<T>&& values)
      : entries_(std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())) {}

  [[nodiscard]] Iterator begin() const { return Iterator(entries_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(entries_.data() + entries_.size()); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const T& operator[](std::size_t at) const { return *entries_[at]; }
  [[nodiscard]] const T& at(std::size_t at) const { return *entries_.at(at); }
  [[nodiscard]] const T& front() const { return *entries_.front(); }
  [[nodiscard]] const T& back() const { return *entries_.back(); }

  void push_back(T value) { entries_.emplace_back(std::move(value)); }
  template <class... A>
  void emplace_back(A&&... parts) {
    entries_.emplace_back(T(std::forward<A>(parts)...));
  }
  void insert(Iterator before, T value) {
    entries_.insert(entries_.begin() + (before - begin()), SharedEntry<T>(std::move(value)));
  }
  void clear() { entries_.clear(); }
  /// Takes out what the predicate names.
  template <class Is>
  void erase_if(Is is) {
    entries_.erase_if([&](const SharedEntry<T>& entry) { return is(*entry); });
  }
  /// Puts changed ones in the place of those that the predicate names.
  template <class Is, class Change>
  void change_if(Is is, Change change) {
    for (auto& entry : entries_) {
      if (!is(*entry)) continue;
      T changed = *entry;
      change(changed);
      entry = SharedEntry<T>(std::move(changed));
    }
  }
  void sort() {
    std::ranges::sort(entries_, [](const auto& a, const auto& b) { return *a < *b; });
  }
  void shrink_to_fit() { entries_.shrink_to_fit(); }

  friend bool operator==(const SharedList& a, const SharedList& b) {
    return std::ranges::equal(a.entries_, b.entries_,
                              [](const auto& x, const auto& y) { return x.is_same(y) || *x == *y; });
  }
  friend auto operator<=>(const SharedList& a, const SharedList& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  template <class, class>
  friend class SharedEntries;
  SlimVector<SharedEntry<T>> entries_;
};

/// The entries in use, so that equal ones are kept once. `Hash` of a `T`.
template <class T, class Hash>
class SharedEntries {
 public:
  void share(SharedList<T>& list) {
    share(list, [](const T&) {});
  }
  void share(SharedOptional<T>& maybe) {
    share(maybe, [](const T&) {});
  }
  /// `settle` is called with each one that is new, before anybody else sees it, and must not change what it says.
  template <class Settle>
  void share(SharedList<T>& list, Settle settle) {
    for (auto& entry : list.entries_) share(entry, settle);
  }
  template <class Settle>
  void share(SharedOptional<T>& maybe, Settle settle) {
    if (maybe) share(maybe.entry_, settle);
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct EntryHash {
    [[nodiscard]] std::size_t operator()(const SharedEntry<T>& entry) const { return Hash{}(*entry); }
  };
  struct IsEqual {
    bool operator()(const SharedEntry<T>& a, const SharedEntry<T>& b) const { return a.is_same(b) || *a == *b; }
  };
  struct IsFree {
    bool operator()(const SharedEntry<T>& entry) const { return !entry.has_value(); }
  };
  struct IsUsed {
    bool operator()(const SharedEntry<T>& entry) const { return !entry.is_last(); }
  };
  template <class Settle>
  void share(SharedEntry<T>& entry, Settle& settle) {
    const auto [known, is_new] = entries_.take_in(entry);
    if (is_new) {
      settle(entry.body_->value);
    } else {
      entry = known;
    }
  }

  HandleSet<SharedEntry<T>, EntryHash, IsEqual, IsFree, IsUsed> entries_;
};

}  // namespace dhc::k8s
