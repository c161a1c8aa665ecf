#pragma once
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "app/record/codes.h"
#include "app/record/fields.h"
#include "k8s-client/model/shared.h"

namespace dhc::record {

using Json = simdjson::dom::element;

/// Reads values as TextWriter wrote them: what is absent keeps its default, what nobody asks for is passed over. The
/// first fault is kept, with the names of the members that lead to it.
class TextReader {
 public:
  [[nodiscard]] bool ok() const { return fault_.empty(); }
  [[nodiscard]] const std::string& fault() const { return fault_; }

  template <class T>
  void operator()(std::string_view key, T& field) {
    if (!ok()) return;
    Json member;
    if (object_.at_key(key).get(member) != simdjson::SUCCESS) return;
    value(member, field);
    if (!ok()) fault_ = std::string(key) + (fault_.starts_with(' ') ? "" : ".") + fault_;
  }
  template <class T>
  void always(std::string_view key, T& field) {
    (*this)(key, field);
  }

  void value(Json json, std::string& text) {
    std::string_view view;
    if (json.get(view) != simdjson::SUCCESS) return fail_as("text");
    text = view;
  }
  void value(Json json, SharedText& text) {
    std::string_view view;
    if (json.get(view) != simdjson::SUCCESS) return fail_as("text");
    text = view;
  }
  void value(Json json, bool& flag) {
    if (json.get(flag) != simdjson::SUCCESS) fail_as("true or false");
  }
  void value(Json json, double& number) {
    if (json.get(number) != simdjson::SUCCESS) fail_as("a number");
  }
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  void value(Json json, N& number) {
    std::int64_t whole = 0;
    if (json.get(whole) != simdjson::SUCCESS || !std::in_range<N>(whole)) return fail_as("a whole number");
    number = static_cast<N>(whole);
  }
  template <class E>
    requires std::is_enum_v<E>
  void value(Json json, E& word) {
    std::int64_t number = 0;
    if (json.get(number) != simdjson::SUCCESS || number < 0 || number > static_cast<std::int64_t>(kLast<E>))
      return fail_as("a known number");
    word = static_cast<E>(number);
  }
  void value(Json json, k8s::Kind& kind) {
    value_by_name(json, kind, [](k8s::Kind one) { return k8s::to_string(one); });
  }
  void value(Json json, ErrorKind& kind) {
    value_by_name(json, kind, [](ErrorKind one) { return to_string(one); });
  }
  void value(Json json, MessagePattern& pattern) {
    std::string text;
    value(json, text);
    auto compiled = MessagePattern::compile(text);
    if (!compiled) return fail_as("a regular expression");
    pattern = *std::move(compiled);
  }
  template <class Rep, class Period>
  void value(Json json, std::chrono::duration<Rep, Period>& time) {
    std::int64_t count = 0;
    value(json, count);
    time = std::chrono::duration<Rep, Period>(count);
  }
  template <class Clock, class Duration>
  void value(Json json, std::chrono::time_point<Clock, Duration>& time) {
    Duration since{};
    value(json, since);
    time = std::chrono::time_point<Clock, Duration>(since);
  }
  template <class T>
  void value(Json json, std::optional<T>& maybe) {
    if (json.is_null()) return maybe.reset();
    maybe = T{};  // Not emplace(): to clang a struct within a struct has no default constructor yet.
    value(json, *maybe);
  }
  void value(Json json, k8s::StringMap& map) {
    each_text(json, [&](std::string_view key, std::string_view text) { map.emplace_back(key, text); });
  }
  void value(Json json, std::map<std::string, std::string, std::less<>>& map) {
    each_text(json, [&](std::string_view key, std::string_view text) { map.emplace(key, text); });
  }
  template <class T>
  void value(Json json, std::vector<T>& list) {
    simdjson::dom::array array;
    if (json.get(array) != simdjson::SUCCESS) return fail_as("a list");
    list.clear();
    list.reserve(array.size());
    for (const Json item : array) {
      value(item, list.emplace_back());
      if (!ok()) return;
    }
  }
  template <class T>
  void value(Json json, SlimVector<T>& list) {
    std::vector<T> values;
    value(json, values);
    list = std::move(values);
  }
  template <class T>
  void value(Json json, k8s::SharedOptional<T>& maybe) {
    std::optional<T> inner;
    value(json, inner);
    maybe = std::move(inner);
  }
  template <class T>
  void value(Json json, k8s::SharedList<T>& list) {
    std::vector<T> values;
    value(json, values);
    list = k8s::SharedList<T>(std::move(values));
  }
  template <class T>
  void value(Json json, k8s::Shared<T>& shared) {
    T inner;
    value(json, inner);
    shared = k8s::Shared<T>(std::move(inner));
  }
  template <class T>
    requires requires(TextReader& v, T& x) { fields(v, x); }
  void value(Json json, T& record) {
    simdjson::dom::object inner;
    if (json.get(inner) != simdjson::SUCCESS) return fail_as("an object");
    const auto outer = std::exchange(object_, inner);
    fields(*this, record);
    object_ = outer;
  }

 private:
  void fail_as(std::string_view what) {
    fault_ = " is not ";
    fault_ += what;
  }
  template <class E, class Name>
  void value_by_name(Json json, E& word, Name name) {
    std::string_view view;
    if (json.get(view) != simdjson::SUCCESS) return fail_as("text");
    for (int number = 0; number <= static_cast<int>(kLast<E>); ++number) {
      if (name(static_cast<E>(number)) != view) continue;
      word = static_cast<E>(number);
      return;
    }
    fail_as("a known word");
  }
  template <class Take>
  void each_text(Json json, Take take) {
    simdjson::dom::object inner;
    if (json.get(inner) != simdjson::SUCCESS) return fail_as("an object");
    for (const auto& [key, member] : inner) {
      std::string_view text;
      if (member.get(text) != simdjson::SUCCESS) return fail_as("an object of texts");
      take(key, text);
    }
  }

  simdjson::dom::object object_;
  std::string fault_;
};

}  // namespace dhc::record
