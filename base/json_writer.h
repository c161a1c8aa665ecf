#pragma once
#include <concepts>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "base/now.h"

namespace dhc {

/// Writes JSON onto the end of a text, one member after the other, exactly as `json_text` writes a tree: for what is
/// written again and again, of which a tree costs ten times as much.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { begin('{'); }
  void end_object() { end('}'); }
  void begin_array() { begin('['); }
  void end_array() { end(']'); }
  void key(std::string_view name) {
    value(name);
    out_ += ':';
    follows_ = false;
  }

  /// A text, of which bytes that are not UTF-8 become U+FFFD; an integer; a number; a flag; or a time, in RFC 3339.
  template <class T>
  void value(const T& given) {
    separate();
    if constexpr (std::convertible_to<const T&, std::string_view>) {
      add_text(given);
    } else if constexpr (std::same_as<T, bool>) {
      out_ += given ? "true" : "false";
    } else if constexpr (std::same_as<T, double>) {
      add_number(given);
    } else if constexpr (std::same_as<T, WallTime>) {
      add_time(given);
    } else {
      static_assert(std::integral<T>);
      fmt::format_to(std::back_inserter(out_), "{}", given);
    }
  }

  template <class T>
  void member(std::string_view name, const T& given) {
    key(name);
    value(given);
  }

  // Left out while they say nothing: a reader takes an absent member for empty or false.
  void put(std::string_view name, std::string_view text) {
    if (!text.empty()) member(name, text);
  }
  void put(std::string_view name, const std::optional<WallTime>& time) {
    if (time) member(name, *time);
  }
  template <std::same_as<bool> Flag>  // no pointer would be taken for one
  void put(std::string_view name, Flag flag) {
    if (flag) member(name, true);
  }
  /// An object whose members `write` writes; left out if it writes none.
  template <class Write>
  void put_group(std::string_view name, const Write& write) {
    const auto size = out_.size();
    const bool follows = follows_;
    key(name);
    begin_object();
    const auto empty = out_.size();
    write();
    if (out_.size() != empty) return end_object();
    out_.resize(size);
    follows_ = follows;
  }
  /// An array of objects, one for each of these, whose members `write` writes; left out if there are none.
  template <class Entries, class Write>
  void put_entries(std::string_view name, const Entries& entries, const Write& write) {
    if (entries.empty()) return;
    key(name);
    begin_array();
    for (const auto& entry : entries) {
      begin_object();
      write(entry);
      end_object();
    }
    end_array();
  }
  /// An array of these.
  template <class Texts>
  void list(std::string_view name, const Texts& texts) {
    key(name);
    begin_array();
    for (const auto& text : texts) value(text);
    end_array();
  }
  /// The same; left out if there are none.
  template <class Texts>
  void put_list(std::string_view name, const Texts& texts) {
    if (!texts.empty()) list(name, texts);
  }

 private:
  void separate() {
    if (follows_) out_ += ',';
    follows_ = true;
  }
  void add_text(std::string_view text);
  void add_number(double number);
  void add_time(WallTime time);
  void begin(char bracket) {
    separate();
    out_ += bracket;
    follows_ = false;
  }
  void end(char bracket) {
    out_ += bracket;
    follows_ = true;
  }

  std::string& out_;
  bool follows_ = false;  // something that a comma must part from what comes
};

}  // namespace dhc
