#include "cli/demo_account.h"

#include <chrono>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/clock.h"
#include "app/describe.h"
#include "base/printable.h"

namespace dhc::cli {

namespace {
constexpr std::size_t kPlainWidth = 400;
constexpr std::size_t kHeadWidth = 20;  // the time and the word before each text

std::size_t width_of(bool terminal) {
  winsize size{};
  if (!terminal || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 60) return kPlainWidth;
  return size.ws_col;
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string who(const Subject& subject) {
  const auto name = subject.ns.empty() ? subject.name : subject.ns + "/" + subject.name;
  return subject.kind == "Pod" ? name : subject.kind + " " + name;
}
}  // namespace

DemoAccount::DemoAccount(MonoTime start) : start_(start), terminal_(::isatty(STDOUT_FILENO) == 1) {}

void DemoAccount::line(Tone tone, std::string_view word, std::string text) {
  static constexpr const char* kColours[] = {"\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[33m"};
  const auto elapsed = std::chrono::duration<double>(mono_now() - start_).count();
  text = printable_cut(text, width_of(terminal_) - kHeadWidth);
  const auto colour = terminal_ ? kColours[static_cast<unsigned>(tone)] : "";
  const std::lock_guard lock(mutex_);
  write_out(fmt::format("{:6.1f}s  {}{:<9}{}  {}\n", elapsed, colour, word, terminal_ ? "\x1b[0m" : "", text));
}

void DemoAccount::befell(const sim::DemoEvent& event) {
  const bool broke = event.what == sim::DemoEvent::What::Broke;
  const auto holders =
      event.holders.empty() ? std::string("nobody") : fmt::format("{}", fmt::join(event.holders, ", "));
  line(broke ? Tone::Bad : Tone::Good, broke ? "BROKE" : "repaired",
       fmt::format("{} on {} ({}){}{}, held by {}", event.device, event.node, event.kind,
                   event.message.empty() ? "" : ": ", event.message, holders));
}

void DemoAccount::decided(const Verdict& verdict) {
  line(Tone::Thought, "decided",
       fmt::format("{}: {}: {}", who(verdict.subject), to_string(verdict.reason), verdict.message));
}

void DemoAccount::done(const Outcome& outcome) {
  const auto words = dhc::words_of(outcome.action);
  if (!outcome.status) return line(Tone::Bad, "refused", fmt::format("{}: {}", words, outcome.status.error().message));
  const auto facts = facts_of(outcome.action);
  if (facts.is_notable || facts.queue == Queue::Conditions) line(Tone::Act, "done", words);
}

void DemoAccount::warn(std::string_view text) { line(Tone::Bad, "log", std::string(text)); }

void DemoAccount::say(std::string_view text) {
  const std::lock_guard lock(mutex_);
  write_out(text);
}

}  // namespace dhc::cli
