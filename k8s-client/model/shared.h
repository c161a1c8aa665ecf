#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

namespace dhc::k8s {

/// A value that many records may have in common, kept once; the empty value costs nothing. Compared by what it says.
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T value) {
    if (value != T{}) value_ = std::make_shared<const T>(std::move(value));
  }
  [[nodiscard]] const T& operator*() const {
    static constexpr T kEmpty{};
    return value_ ? *value_ : kEmpty;
  }
  const T* operator->() const { return &**this; }

  friend bool operator==(const Shared& a, const Shared& b) { return a.value_ == b.value_ || *a == *b; }
  friend auto operator<=>(const Shared& a, const Shared& b) { return *a <=> *b; }

 private:
  template <class>
  friend class SharedPool;
  std::shared_ptr<const T> value_;
};

/// The values in use, so that equal ones are kept once.
template <class T>
class SharedPool {
 public:
  void share(Shared<T>& shared) {
    if (!shared.value_) return;
    const auto [known, is_new] = values_.insert(shared.value_);
    if (!is_new) {
      shared.value_ = *known;
      return;
    }
    if (values_.size() < sweep_at_) return;
    std::erase_if(values_, [](const auto& value) { return value.use_count() == 1; });
    sweep_at_ = std::max(kFewest, values_.size() * 2);
  }
  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  struct Less {
    bool operator()(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) const { return *a < *b; }
  };
  static constexpr std::size_t kFewest = 64;
  std::set<std::shared_ptr<const T>, Less> values_;
  std::size_t sweep_at_ = kFewest;
};

}  // namespace dhc::k8s
