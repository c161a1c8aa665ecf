#pragma once
#include <mutex>
#include <string>
#include <string_view>

#include "app/message.h"
#include "base/now.h"
#include "domain/contract/verdict.h"
#include "simulator/script/demo_script.h"

namespace dhc::cli {

/// Tells on standard output what is seen, decided and done, one line each: plain, or coloured and cut to the width of a
/// terminal. Thread-safe.
class DemoAccount {
 public:
  explicit DemoAccount(MonoTime start);

  void befell(const sim::DemoEvent& event);
  void decided(const Verdict& verdict);
  void done(const Outcome& outcome);
  void warn(std::string_view line);
  /// As it is, without a time.
  void say(std::string_view text);

 private:
  enum class Tone : unsigned char { Bad, Good, Thought, Act };
  void line(Tone tone, std::string_view word, std::string text);

  const MonoTime start_;
  const bool terminal_;
  std::mutex mutex_;
};

}  // namespace dhc::cli
