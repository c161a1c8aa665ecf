#pragma once
#include <atomic>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

namespace dhc {

class SharedText;

/// What a SharedText can be made of, and compared with.
template <class T>
concept OtherText =
    !std::same_as<std::remove_cvref_t<T>, SharedText> && std::convertible_to<const T&, std::string_view>;

/// A text that never changes, in a pointer's size: it is read as a string is, and copies of it share what they say.
/// Holders may be on different threads. Compared by what it says. Up to seven bytes stand in it itself: a view of it
/// lasts as long as the holder it was taken of.
class SharedText {
 public:
  constexpr SharedText() = default;
  template <OtherText T>
  SharedText(const T& text)  // NOLINT(google-explicit-constructor): as std::string
      : word_(made_of(std::string_view(text))) {}
  SharedText(const SharedText& other) noexcept : word_(other.word_) {
    if (has_body()) body()->holders.fetch_add(1, std::memory_order_relaxed);
  }
  SharedText(SharedText&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
  SharedText& operator=(const SharedText& other) noexcept {
    SharedText copy(other);
    std::swap(word_, copy.word_);
    return *this;
  }
  SharedText& operator=(SharedText&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  constexpr ~SharedText() {
    if (has_body() && body()->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) release(body());
  }

  [[nodiscard]] std::string_view view() const noexcept {
    if (has_body()) return {reinterpret_cast<const char*>(body() + 1), body()->size};
    const auto* bytes = reinterpret_cast<const char*>(&word_);
    return {bytes + 1, static_cast<std::size_t>(static_cast<unsigned char>(*bytes) >> 1U)};
  }
  operator std::string_view() const noexcept { return view(); }  // NOLINT(google-explicit-constructor): as std::string
  operator std::string() const { return std::string(view()); }   // NOLINT(google-explicit-constructor): as a string
  [[nodiscard]] std::string str() const { return std::string(view()); }
  [[nodiscard]] bool empty() const noexcept { return word_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return view().size(); }
  [[nodiscard]] auto begin() const noexcept { return view().begin(); }
  [[nodiscard]] auto end() const noexcept { return view().end(); }
  [[nodiscard]] bool starts_with(std::string_view what) const noexcept { return view().starts_with(what); }
  [[nodiscard]] bool ends_with(std::string_view what) const noexcept { return view().ends_with(what); }
  [[nodiscard]] bool contains(std::string_view what) const noexcept { return view().contains(what); }
  [[nodiscard]] std::size_t find(char what, std::size_t from = 0) const noexcept { return view().find(what, from); }
  [[nodiscard]] std::size_t find(std::string_view what, std::size_t from = 0) const noexcept {
    return view().find(what, from);
  }
  [[nodiscard]] std::string substr(std::size_t from, std::size_t count = std::string_view::npos) const {
    return std::string(view().substr(from, count));
  }
  void clear() noexcept { *this = SharedText(); }

  /// Whether nobody else holds it; one that stands in its holder is held by nobody else.
  [[nodiscard]] bool is_last() const noexcept {
    return !has_body() || body()->holders.load(std::memory_order_acquire) == 1;
  }
  /// Whether what it says is kept apart from it, so that it saves something to share it.
  [[nodiscard]] constexpr bool has_body() const noexcept { return word_ != 0 && (word_ & 1U) == 0; }

  friend bool operator==(const SharedText& a, const SharedText& b) noexcept {
    if (a.word_ == b.word_) return true;
    return a.has_body() && b.has_body() && a.view() == b.view();
  }
  friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) noexcept {
    if (a.word_ == b.word_) return std::strong_ordering::equal;
    return order(a, b);
  }
  template <OtherText T>
  friend bool operator==(const SharedText& a, const T& b) noexcept {
    return a.view() == std::string_view(b);
  }
  template <OtherText T>
  friend std::strong_ordering operator<=>(const SharedText& a, const T& b) noexcept {
    return a.view() <=> std::string_view(b);
  }

  friend std::string operator+(const SharedText& a, const SharedText& b) { return joined(a.view(), b.view()); }
  friend std::string operator+(const SharedText& a, char b) { return joined(a.view(), {&b, 1}); }
  template <OtherText T>
  friend std::string operator+(const SharedText& a, const T& b) {
    return joined(a.view(), b);
  }
  template <OtherText T>
  friend std::string operator+(const T& a, const SharedText& b) {
    return joined(a, b.view());
  }
  template <class Stream>
    requires requires(Stream& stream, std::string_view text) { stream << text; }
  friend Stream& operator<<(Stream& stream, const SharedText& text) {
    stream << text.view();
    return stream;
  }

 private:
  static_assert(std::endian::native == std::endian::little, "the lowest bit must be in the first byte");
  static constexpr std::size_t kMostInside = sizeof(std::uint64_t) - 1;
  /// The text follows it.
  struct Body {
    std::atomic<std::uint32_t> holders;
    std::uint32_t size;
  };
  static std::uint64_t made_of(std::string_view text);
  static void release(Body* body) noexcept;
  static std::strong_ordering order(const SharedText& a, const SharedText& b) noexcept;
  static std::string joined(std::string_view a, std::string_view b);
  [[nodiscard]] Body* body() const noexcept { return std::bit_cast<Body*>(word_); }

  std::uint64_t word_ = 0;  ///< A Body's address; or the text, with twice its length and one in the first byte.
};

}  // namespace dhc

template <>
struct std::hash<dhc::SharedText> {
  std::size_t operator()(const dhc::SharedText& text) const noexcept {
    return std::hash<std::string_view>{}(text.view());
  }
};

// Each converts to the other: what both are read as says which way the standard's algorithms go.
template <template <class> class A, template <class> class B>
struct std::basic_common_reference<dhc::SharedText, std::string, A, B> {
  using type = std::string_view;
};
template <template <class> class A, template <class> class B>
struct std::basic_common_reference<std::string, dhc::SharedText, A, B> {
  using type = std::string_view;
};
template <template <class> class A, template <class> class B>
struct std::basic_common_reference<dhc::SharedText, std::string_view, A, B> {
  using type = std::string_view;
};
template <template <class> class A, template <class> class B>
struct std::basic_common_reference<std::string_view, dhc::SharedText, A, B> {
  using type = std::string_view;
};

template <>
struct fmt::formatter<dhc::SharedText> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const dhc::SharedText& text, Context& context) const {
    return fmt::formatter<std::string_view>::format(text.view(), context);
  }
};
