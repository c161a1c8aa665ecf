#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "base/shared_text.h"
#include "base/slim_vector.h"

namespace dhc {

/// A set of texts, sorted, for indexes in which most entries name one: that one stands in the set itself.
class SortedTexts {
 public:
  using value_type = SharedText;
  using const_iterator = const SharedText*;
  using iterator = const_iterator;

  [[nodiscard]] const SharedText* begin() const { return more_.empty() ? &only_ : more_.begin(); }
  [[nodiscard]] const SharedText* end() const { return begin() + size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return more_.empty() ? (only_.empty() ? 0 : 1) : more_.size(); }
  [[nodiscard]] const SharedText& front() const { return *begin(); }
  [[nodiscard]] const SharedText& operator[](std::size_t at) const { return begin()[at]; }
  [[nodiscard]] bool contains(std::string_view text) const {
    const auto* at = place_of(text);
    return at != end() && *at == text;
  }
  /// True if it was not there. An empty text is none.
  bool insert(const SharedText& text) {
    if (text.empty()) return false;
    if (empty()) {
      only_ = text;
      return true;
    }
    const auto* at = place_of(text);
    if (at != end() && *at == text) return false;
    const auto place = at - begin();
    if (more_.empty()) more_.emplace_back(std::move(only_));
    more_.insert(more_.begin() + place, text);
    return true;
  }
  /// How many went, as of a std::set.
  std::size_t erase(std::string_view text) {
    const auto* at = place_of(text);
    if (at == end() || *at != text) return 0;
    if (more_.empty()) {
      only_.clear();
      return 1;
    }
    more_.erase(at);
    if (more_.size() == 1) {
      only_ = more_.front();
      more_.clear();
    }
    return 1;
  }
  template <class U>
    requires std::convertible_to<const SharedText&, U>
  operator std::vector<U>() const {  // NOLINT(google-explicit-constructor): as a vector of another type
    return std::vector<U>(begin(), end());
  }
  friend bool operator==(const SortedTexts& a, const SortedTexts& b) { return std::ranges::equal(a, b); }

 private:
  [[nodiscard]] const SharedText* place_of(std::string_view text) const {
    return std::ranges::lower_bound(begin(), end(), text, std::ranges::less{}, &SharedText::view);
  }
  SharedText only_;
  SlimVector<SharedText> more_;
};

}  // namespace dhc
