#pragma once
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/record/fields.h"
#include "k8s-client/model/shared.h"

namespace dhc::record {

/// Appends `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
void put_string(std::string& out, std::string_view text);

/// Appends values as JSON, by their fields. Times and durations are whole numbers: wall times microseconds since 1970,
/// all else milliseconds.
class TextWriter {
 public:
  explicit TextWriter(std::string& out) : out_(out) {}

  /// A member that is left out while it says nothing.
  template <class T>
  void operator()(std::string_view key, T& field) {
    if (!says_nothing(field)) always(key, field);
  }
  template <class T>
  void always(std::string_view key, T& field) {
    begin_member(key);
    value(field);
  }

  /// JSON as it is.
  void raw(std::string_view json) { out_ += json; }

  void value(const std::string& text) { put_string(out_, text); }
  void value(const SharedText& text) { put_string(out_, text); }
  void value(bool flag) { out_ += flag ? "true" : "false"; }
  void value(double number) {
    char buffer[32];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  }
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  void value(N number) {
    char buffer[24];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
  }
  template <class E>
    requires std::is_enum_v<E>
  void value(E word) {
    value(static_cast<int>(word));
  }
  void value(k8s::Kind kind) { put_string(out_, k8s::to_string(kind)); }
  void value(ErrorKind kind) { put_string(out_, to_string(kind)); }
  void value(const MessagePattern& pattern) { put_string(out_, pattern.text()); }
  template <class Rep, class Period>
  void value(std::chrono::duration<Rep, Period> time) {
    value(static_cast<std::int64_t>(time.count()));
  }
  template <class Clock, class Duration>
  void value(std::chrono::time_point<Clock, Duration> time) {
    value(time.time_since_epoch());
  }
  template <class T>
  void value(std::optional<T>& maybe) {
    if (maybe) {
      value(*maybe);
    } else {
      out_ += "null";
    }
  }
  void value(k8s::StringMap& map) { members(map); }
  void value(std::map<std::string, std::string, std::less<>>& map) { members(map); }
  template <class T>
  void value(std::vector<T>& list) {
    items(list);
  }
  template <class T>
  void value(SlimVector<T>& list) {
    items(list);
  }
  template <class T>
  void value(k8s::SharedOptional<T>& maybe) {
    std::optional<T> copy = maybe ? std::optional(*maybe) : std::nullopt;
    value(copy);
  }
  template <class T>
  void value(k8s::SharedList<T>& list) {
    std::vector<T> copy(list.begin(), list.end());
    value(copy);
  }
  template <class T>
  void value(k8s::Shared<T>& shared) {
    T copy = *shared;
    value(copy);
  }
  template <class T>
    requires requires(TextWriter& v, T& x) { fields(v, x); }
  void value(T& record) {
    out_ += '{';
    fields(*this, record);
    out_ += '}';
  }

  /// Begins a member; its value follows.
  void begin_member(std::string_view key) {
    if (!out_.empty() && out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }

 private:
  template <class List>
  void items(List& list) {
    out_ += '[';
    for (auto& item : list) {
      if (&item != &list.front()) out_ += ',';
      value(item);
    }
    out_ += ']';
  }
  template <class T>
  static bool says_nothing(const T& field) {
    if constexpr (requires { field.empty(); }) {
      return field.empty();
    } else if constexpr (requires { field.has_value(); }) {
      return !field.has_value();
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return field == T();
    } else if constexpr (requires { field.time_since_epoch(); }) {
      return field == T();
    } else if constexpr (requires { *field == *field; }) {
      return field == T();
    } else {
      return false;
    }
  }
  template <class Map>
  void members(const Map& map) {
    out_ += '{';
    bool is_first = true;
    for (const auto& [key, text] : map) {
      if (!std::exchange(is_first, false)) out_ += ',';
      put_string(out_, key);
      out_ += ':';
      put_string(out_, text);
    }
    out_ += '}';
  }

  std::string& out_;
};

}  // namespace dhc::record
