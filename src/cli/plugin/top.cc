#include "cli/plugin/top.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/ioctl.h>
#include <termios.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/signals.h"
#include "cli/plugin/screen.h"
#include "cli/plugin/status_reader.h"

namespace dhc::cli {

namespace {
constexpr Millis kLook{100};
constexpr Millis kRedraw = Seconds(1);

/// The other screen, without echo and cursor, and back again however it ends.
class Terminal {
 public:
  Terminal() {
    (void)::tcgetattr(STDIN_FILENO, &before_);
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    put("\x1b[?1049h\x1b[?25l");
  }
  ~Terminal() {
    put("\x1b[?25h\x1b[?1049l");
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static void put(const std::string& bytes) {
    std::fputs(bytes.c_str(), stdout);
    (void)std::fflush(stdout);
  }

  [[nodiscard]] static ScreenSize size() {
    winsize window{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {};
    return {.columns = window.ws_col, .rows = window.ws_row};
  }

  /// What was typed within the time; empty: nothing. `is_closed`: nobody will type any more.
  [[nodiscard]] static std::string typed(Millis within, bool& is_closed) {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, static_cast<int>(within.count())) <= 0) return {};
    std::array<char, 64> bytes{};
    const auto count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    is_closed = count == 0 || (count < 0 && (input.revents & POLLHUP) != 0);
    return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : std::string();
  }

 private:
  termios before_{};
};

/// What the follower's thread has seen last.
class Latest {
 public:
  void put(const Sight& sight) {
    const std::lock_guard lock(mutex_);
    sight_ = sight;
  }
  [[nodiscard]] std::optional<Sight> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(sight_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<Sight> sight_;
};

/// Where the table is after these keys. **Source:** ECMA-48's cursor keys, as xterm sends them.
std::size_t scrolled(std::size_t first, const std::string& keys, std::size_t page) {
  if (keys == "\x1b[A" || keys == "k") return first == 0 ? 0 : first - 1;
  if (keys == "\x1b[B" || keys == "j") return first + 1;
  if (keys == "\x1b[5~") return first < page ? 0 : first - page;
  if (keys == "\x1b[6~" || keys == " ") return first + page;
  if (keys == "\x1b[H" || keys == "\x1b[1~" || keys == "g") return 0;
  return first;
}

void draw_until_left(Latest& latest, Sight sight, const std::stop_token& stop) {
  const Terminal terminal;
  std::size_t first = 0;
  auto size = Terminal::size();
  auto drawn_at = MonoTime::min();
  bool is_closed = false;
  while (!stop.stop_requested() && !is_closed) {
    const auto now_size = Terminal::size();
    const bool resized = now_size.columns != size.columns || now_size.rows != size.rows;
    size = now_size;
    auto news = latest.take();
    const bool is_news = news.has_value();
    if (news) sight = *std::move(news);
    if (is_news || resized || mono_now() >= drawn_at + kRedraw) {
      auto screen = screen_of(sight, size, first, true);
      first = screen.first;
      Terminal::put(screen_bytes(screen));
      drawn_at = mono_now();
    }
    const auto keys = Terminal::typed(kLook, is_closed);
    if (keys == "q" || keys == "Q") return;
    if (const auto next = scrolled(first, keys, size.rows / 2); next != first) {
      first = next;
      drawn_at = MonoTime::min();
    }
  }
}
}  // namespace

Printed top(const ViewOptions& options) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    return failure("top needs a terminal; without one: devices --watch");
  Signals signals;
  const auto token = signals.token();
  const auto connection = connect_to(options.cluster);
  if (!connection) return failure("no access to a cluster: " + connection.error().message);
  auto first = read_status(*connection->client, options.cluster.controller_ns, token);
  if (!first) return failure(first.error().message);
  Latest latest;
  const std::jthread follower([&](const std::stop_token& left) {
    const std::stop_callback also(left, [&signals] { signals.request_stop(); });
    const auto show = [&](const Sight& sight) {
      latest.put(sight);
      return true;
    };
    (void)follow_status(connection->client, options.cluster.controller_ns, show, token);
  });
  draw_until_left(latest, *std::move(first), token);
  return {};
}

}  // namespace dhc::cli
