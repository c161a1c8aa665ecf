#include "app/log.h"

#include <mutex>
#include <utility>
#include <vector>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "app/clock.h"
#include "app/log_line.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
/// Hands each line to a function.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(Log::Sink write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    write_({message.payload.data(), message.payload.size()});
  }
  void flush_() override {}
  Log::Sink write_;
};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}
}  // namespace

struct Log::Output {
  spdlog::logger logger;
  explicit Output(spdlog::sink_ptr sink) : logger("dhc", std::move(sink)) {
    logger.set_level(spdlog::level::trace);
    logger.set_pattern("%v");
    logger.flush_on(spdlog::level::trace);
  }
};

Log::Log(LogFormat format, LogLevel level)
    : format_(format),
      level_(level),
      output_(std::make_unique<Output>(std::make_shared<spdlog::sinks::stderr_sink_mt>())) {}

Log::Log(LogFormat format, LogLevel level, Sink sink)
    : format_(format),
      level_(level),
      output_(std::make_unique<Output>(std::make_shared<FunctionSink>(std::move(sink)))) {}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message, Fields fields) {
  if (level < level_) return;
  const std::string at = format_micro_time(wall_now());
  std::vector<LogPair> pairs = {{"ts", at}, {"level", to_string(level)}, {"msg", message}};
  for (const auto& field : fields) {
    if (!field.value.empty()) pairs.push_back({field.key, field.value, field.is_number});
  }
  output_->logger.log(level_of(level),
                      spdlog::string_view_t(format_ == LogFormat::Json ? json_line(pairs) : text_line(pairs)));
}

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warn:
      return "warn";
    case LogLevel::Error:
      return "error";
  }
  return "info";
}

}  // namespace dhc
