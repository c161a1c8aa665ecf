#include "cli/demo_screen.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/printable.h"

namespace dhc::cli {

namespace {
constexpr std::size_t kNarrowest = 60;
constexpr std::size_t kWordWidth = 10;
constexpr std::size_t kHead = 8 + 1 + kWordWidth + 1;  // before each text
constexpr std::size_t kLongestText = 1000;

constexpr const char* kPlain = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kDim = "\x1b[2m";

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

const char* colour_of(DemoTone tone) {
  // Red, green, yellow, cyan, magenta; bold, so that they can be read on dark and light.
  static constexpr std::array<const char*, 5> kColours = {"\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m", "\x1b[1;36m",
                                                          "\x1b[1;35m"};
  return kColours.at(static_cast<std::size_t>(tone));
}

std::string in(const char* colour, std::string_view text, const DemoLook& look) {
  return look.is_coloured ? fmt::format("{}{}{}", colour, text, kPlain) : std::string(text);
}

/// Broken between words, each piece at most `width` long; a word that is longer has a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, end);
    auto& last = lines.back();
    if (!last.empty() && last.size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      last += (last.empty() ? "" : " ") + std::string(word);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string in_words(Millis time) {
  using std::chrono::duration_cast, std::chrono::hours, std::chrono::minutes, std::chrono::seconds;
  const auto minutes_left = duration_cast<minutes>(time);
  if (minutes_left >= hours(1))
    return fmt::format("{} h {} min", minutes_left / hours(1), minutes_left % hours(1) / minutes(1));
  if (minutes_left >= minutes(2)) return fmt::format("{} min", minutes_left.count());
  return fmt::format("{} s", duration_cast<seconds>(time).count());
}
}  // namespace

DemoLook look_of_output() {
  DemoLook look;
  if (::isatty(STDOUT_FILENO) != 1) return look;
  const char* term = std::getenv("TERM");
  look.is_coloured = !is_set("NO_COLOR") && !(term != nullptr && std::string_view(term) == "dumb");
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    look.width = std::max<std::size_t>(size.ws_col, kNarrowest);
  }
  return look;
}

std::string painted(const DemoLine& line, const DemoLook& look) {
  const auto time = std::chrono::floor<std::chrono::seconds>(line.at);
  std::string head = fmt::format("{:%H:%M:%S} {} ", time,
                                 in(colour_of(line.tone), fmt::format("{:<{}}", line.word, kWordWidth), look));
  std::string out;
  // The last column stays empty: a terminal may wrap there by itself.
  const auto width = look.width - kHead - 1;
  const auto text = printable_cut(line.text, kLongestText);
  if (!line.is_wrapped) {
    constexpr std::string_view kCut = "...";
    return head + (text.size() <= width ? text : printable_cut(text, width - kCut.size()) + std::string(kCut)) + "\n";
  }
  for (const auto& piece : wrapped(text, width)) {
    out += std::exchange(head, std::string(kHead, ' ')) + piece + "\n";
  }
  return out;
}

std::string heading(const DemoAct& act, std::size_t number, std::size_t count, const DemoLook& look) {
  const auto title = fmt::format("Act {} of {}, {}: ", number, count, act.name);
  std::string out = "\n";
  for (const auto& piece : wrapped(title + std::string(act.title), look.width - 1))
    out += in(kBold, piece, look) + "\n";
  for (auto lines : {act.policy, act.limits}) {
    while (!lines.empty()) {
      const auto end = std::min(lines.find('\n'), lines.size());
      out += in(kDim, "  | " + std::string(lines.substr(0, end)), look) + "\n";
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
  }
  return out + "\n";
}

std::string skipped(Millis time, const DemoLook& look) {
  return in(kDim, fmt::format("         ... {} later", in_words(time)), look) + "\n";
}

}  // namespace dhc::cli
