#include "base/rfc3339.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/digit.h"

namespace dhc {

namespace {

namespace chr = std::chrono;

constexpr WallTime kFirst = chr::sys_days{chr::year{0} / 1 / 1};
constexpr WallTime kLast = WallTime{chr::sys_days{chr::year{10000} / 1 / 1}} - chr::microseconds{1};

// Takes text from the front, piece by piece; after a piece that does not fit nothing fits any more.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (rest_.empty() || !is_digit(rest_.front())) return failed();
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }

  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) failed();
  }

  chr::microseconds fraction() {
    int value = 0;
    int digits = 0;
    while (!rest_.empty() && is_digit(rest_.front())) {
      if (digits < 6) value = value * 10 + (rest_.front() - '0');
      ++digits;
      rest_.remove_prefix(1);
    }
    if (digits == 0) failed();
    for (int i = digits; i < 6; ++i) value *= 10;
    return chr::microseconds{value};
  }

  bool done() const { return ok_ && rest_.empty(); }

 private:
  int failed() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  Cursor cursor(text);
  const int year = cursor.number(4);
  cursor.expect('-');
  const int month = cursor.number(2);
  cursor.expect('-');
  const int day = cursor.number(2);
  cursor.expect('T');
  const int hour = cursor.number(2);
  cursor.expect(':');
  const int minute = cursor.number(2);
  cursor.expect(':');
  const int second = cursor.number(2);
  const auto fraction = cursor.take('.') ? cursor.fraction() : chr::microseconds{0};
  chr::minutes offset{0};
  if (!cursor.take('Z')) {
    const bool west = cursor.take('-');
    if (!west) cursor.expect('+');
    const int offset_hours = cursor.number(2);
    cursor.expect(':');
    const int offset_minutes = cursor.number(2);
    if (offset_hours > 23 || offset_minutes > 59) return std::nullopt;
    offset = chr::hours{offset_hours} + chr::minutes{offset_minutes};
    if (west) offset = -offset;
  }
  const chr::year_month_day date{chr::year{year}, chr::month{static_cast<unsigned>(month)},
                                 chr::day{static_cast<unsigned>(day)}};
  if (!cursor.done() || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return chr::sys_days{date} + chr::hours{hour} + chr::minutes{minute} + chr::seconds{second} + fraction - offset;
}

namespace {
// Date and time up to the second, without the Z.
std::string format_seconds(WallTime when) {
  const auto day = chr::floor<chr::days>(when);
  const chr::year_month_day date{day};
  const chr::hh_mm_ss time{chr::floor<chr::seconds>(when - day)};
  // By hand: each verdict has several, and a format takes ten times as long.
  std::string text = "0000-00-00T00:00:00";
  const auto put = [&](std::size_t end, auto number) {
    for (; number > 0; number /= 10) text[--end] = static_cast<char>('0' + number % 10);
  };
  put(4, static_cast<int>(date.year()));
  put(7, static_cast<unsigned>(date.month()));
  put(10, static_cast<unsigned>(date.day()));
  put(13, time.hours().count());
  put(16, time.minutes().count());
  put(19, time.seconds().count());
  return text;
}
}  // namespace

std::string format_rfc3339(WallTime when) { return format_seconds(std::clamp(when, kFirst, kLast)) + "Z"; }

std::string format_micro_time(WallTime when) {
  const auto at = std::clamp(when, kFirst, kLast);
  const auto micros = at - chr::floor<chr::seconds>(at);
  return fmt::format("{}.{:06}Z", format_seconds(at), micros.count());
}

}  // namespace dhc
