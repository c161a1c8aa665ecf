#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace dhc {

enum class LogFormat : std::uint8_t { Text, Json };
enum class LogLevel : std::uint8_t { Debug, Info, Warn, Error };

/// One named value of a log line.
struct Field {
  Field(std::string_view field_key, std::string_view field_value) : key(field_key), value(field_value) {}
  Field(std::string_view field_key, const char* field_value) : key(field_key), value(field_value) {}
  Field(std::string_view field_key, const std::string& field_value) : key(field_key), value(field_value) {}
  Field(std::string_view field_key, std::integral auto number)
      : key(field_key), value(std::to_string(number)), is_number(true) {}
  std::string_view key;
  std::string value;
  bool is_number = false;
};

using Fields = std::initializer_list<Field>;

/// Writes one line an event: `ts=... level=... msg=... key=value`, or the same as a JSON object. Control characters are
/// escaped in both, so that hostile text cannot forge a line. Thread-safe.
class Log {
 public:
  /// Where whole lines go, without the newline.
  using Sink = std::function<void(std::string_view)>;

  /// Writes to standard error.
  Log(LogFormat format, LogLevel level);
  /// Writes to `sink`, one call at a time.
  Log(LogFormat format, LogLevel level, Sink sink);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(LogLevel level, std::string_view message, Fields fields = {});

  void debug(std::string_view message, Fields fields = {}) { write(LogLevel::Debug, message, fields); }
  void info(std::string_view message, Fields fields = {}) { write(LogLevel::Info, message, fields); }
  void warn(std::string_view message, Fields fields = {}) { write(LogLevel::Warn, message, fields); }
  void error(std::string_view message, Fields fields = {}) { write(LogLevel::Error, message, fields); }

 private:
  struct Output;
  LogFormat format_;
  LogLevel level_;
  std::unique_ptr<Output> output_;
};

[[nodiscard]] std::string_view to_string(LogLevel level);

}  // namespace dhc
