#pragma once
#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace dhc {

/// A std::vector in a pointer's size, for records of which there are many and whose lists are mostly empty. Its size is
/// kept with its items.
template <class T>
class SlimVector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  constexpr SlimVector() = default;
  SlimVector(std::initializer_list<T> values) : SlimVector(values.begin(), values.end()) {}
  template <std::input_iterator It>
  SlimVector(It first, It last) {
    assign(first, last);
  }
  SlimVector(std::vector<T>&& values)  // NOLINT(google-explicit-constructor): a list as it was read
      : SlimVector(std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())) {
    values.clear();
  }
  SlimVector(const SlimVector& other) : SlimVector(other.begin(), other.end()) {}
  SlimVector(SlimVector&& other) noexcept : items_(std::exchange(other.items_, nullptr)) {}
  SlimVector& operator=(const SlimVector& other) {
    if (this != &other) SlimVector(other).swap(*this);
    return *this;
  }
  SlimVector& operator=(SlimVector&& other) noexcept {
    if (this != &other) SlimVector(std::move(other)).swap(*this);
    return *this;
  }
  constexpr ~SlimVector() {
    if (items_ != nullptr) release();
  }

  /// For whoever takes the list out of its record.
  template <class U>
    requires std::convertible_to<const T&, U>
  operator std::vector<U>() const {  // NOLINT(google-explicit-constructor): as a vector of another type
    return std::vector<U>(begin(), end());
  }

  [[nodiscard]] T* begin() { return items_; }
  [[nodiscard]] T* end() { return items_ + size(); }
  [[nodiscard]] const T* begin() const { return items_; }
  [[nodiscard]] const T* end() const { return items_ + size(); }
  [[nodiscard]] const T* cbegin() const { return begin(); }
  [[nodiscard]] const T* cend() const { return end(); }
  [[nodiscard]] T* data() { return items_; }
  [[nodiscard]] const T* data() const { return items_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return items_ == nullptr ? 0 : head()->size; }
  [[nodiscard]] std::size_t capacity() const { return items_ == nullptr ? 0 : head()->capacity; }
  [[nodiscard]] T& operator[](std::size_t at) { return items_[at]; }
  [[nodiscard]] const T& operator[](std::size_t at) const { return items_[at]; }
  [[nodiscard]] const T& at(std::size_t at) const {
    return at < size() ? items_[at] : throw std::out_of_range("SlimVector");
  }
  [[nodiscard]] T& at(std::size_t at) { return at < size() ? items_[at] : throw std::out_of_range("SlimVector"); }
  [[nodiscard]] T& front() { return items_[0]; }
  [[nodiscard]] const T& front() const { return items_[0]; }
  [[nodiscard]] T& back() { return items_[size() - 1]; }
  [[nodiscard]] const T& back() const { return items_[size() - 1]; }

  template <class... A>
  T& emplace_back(A&&... parts) {
    if (size() == capacity()) {
      // Made before the others move: it may be made of one of them.
      T made(std::forward<A>(parts)...);
      grow();
      std::construct_at(end(), std::move(made));
    } else {
      std::construct_at(end(), std::forward<A>(parts)...);
    }
    ++head()->size;
    return back();
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  T* insert(const T* before, T value) {
    const auto at = before - items_;
    emplace_back(std::move(value));
    std::rotate(begin() + at, end() - 1, end());
    return begin() + at;
  }
  template <std::input_iterator It>
  T* insert(const T* before, It first, It last) {
    const auto at = before - items_;
    const auto old = static_cast<std::ptrdiff_t>(size());
    if constexpr (std::sized_sentinel_for<It, It>) reserve(size() + static_cast<std::size_t>(last - first));
    for (; first != last; ++first) emplace_back(*first);
    std::rotate(begin() + at, begin() + old, end());
    return begin() + at;
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    auto* const to = begin() + (first - items_);
    // Nothing may be moved to where it stands.
    if (first == last) return to;
    auto* const rest = std::move(begin() + (last - items_), end(), to);
    std::destroy(rest, end());
    head()->size = static_cast<std::uint32_t>(rest - items_);
    return to;
  }
  template <class Is>
  std::size_t erase_if(Is is) {
    const auto rest = std::ranges::remove_if(*this, is);
    const auto gone = rest.size();
    erase(rest.begin(), rest.end());
    return gone;
  }
  void pop_back() { erase(end() - 1); }
  void clear() { SlimVector().swap(*this); }
  void reserve(std::size_t count) {
    if (count > capacity()) move_to(count);
  }
  void shrink_to_fit() {
    if (size() < capacity()) move_to(size());
  }
  template <std::input_iterator It>
  void assign(It first, It last) {
    SlimVector made;
    if constexpr (std::sized_sentinel_for<It, It>) made.reserve(static_cast<std::size_t>(last - first));
    for (; first != last; ++first) made.emplace_back(*first);
    swap(made);
  }
  void swap(SlimVector& other) noexcept { std::swap(items_, other.items_); }

  friend bool operator==(const SlimVector& a, const SlimVector& b) { return std::ranges::equal(a, b); }
  friend auto operator<=>(const SlimVector& a, const SlimVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }
  template <class Value>
  friend std::size_t erase(SlimVector& values, const Value& value) {
    return values.erase_if([&](const T& one) { return one == value; });
  }
  template <class Is>
  friend std::size_t erase_if(SlimVector& values, Is is) {
    return values.erase_if(is);
  }

 private:
  struct Head {
    std::uint32_t size;
    std::uint32_t capacity;
  };
  [[nodiscard]] Head* head() const { return reinterpret_cast<Head*>(items_) - 1; }
  void grow() { move_to(std::max(capacity() + 1, capacity() + capacity() / 2)); }
  void move_to(std::size_t capacity) {
    static_assert(alignof(T) <= sizeof(Head));
    if (capacity > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("SlimVector");
    T* to = nullptr;
    if (capacity > 0) {
      auto* const head = static_cast<Head*>(::operator new(sizeof(Head) + capacity * sizeof(T)));
      *head = {.size = static_cast<std::uint32_t>(size()), .capacity = static_cast<std::uint32_t>(capacity)};
      to = reinterpret_cast<T*>(head + 1);
      std::uninitialized_move(begin(), end(), to);
    }
    if (items_ != nullptr) release();
    items_ = to;
  }
  void release() {
    std::destroy(begin(), end());
    ::operator delete(head());
    items_ = nullptr;
  }

  T* items_ = nullptr;
};

}  // namespace dhc
