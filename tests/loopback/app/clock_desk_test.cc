#include "app/clock_desk.h"

#include <ctime>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "app/clock.h"

namespace {

using dhc::Millis;

/// A desk with what it tells.
struct Desk {
  std::vector<Millis> told;
  bool listens = true;
  dhc::StatusStore store{{dhc::k8s::Kind::Pod}};
  dhc::Metrics metrics;
  dhc::Log log{dhc::LogFormat::Text, dhc::LogLevel::Error, [](std::string_view) {}};
  dhc::ClockDesk desk{[this](Millis ahead) {
                        if (listens) told.push_back(ahead);
                        return listens;
                      },
                      store, metrics, log};

  /// An answer of a server whose clock is so far ahead, to a machine whose wall clock was set by `step`.
  void answer(Millis ahead = Millis(0), Millis step = Millis(0)) {
    const auto sent = dhc::wall_now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>((sent + ahead).time_since_epoch()).count();
    const std::time_t time = seconds;
    std::tm utc{};
    gmtime_r(&time, &utc);
    std::string date(64, '\0');
    date.resize(std::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc));
    // The clock that was set is the steady one: the other is read by the desk itself.
    desk.answered({.status = 200, .headers = {{"date", date}}, .body = {}},
                  {.mono = dhc::MonoTime(std::chrono::hours(1000)) - step, .wall = sent});
  }
};

}  // namespace

TEST_CASE("a clock that the server agrees with is told of once it was set, and else of nothing") {
  Desk desk;
  for (int i = 0; i < 3; ++i) desk.answer();
  CHECK(desk.told.empty());
  desk.answer(Millis(0), std::chrono::seconds(30));
  CHECK(desk.told.empty());
  desk.answer(Millis(0), std::chrono::hours(25));
  desk.answer(Millis(0), std::chrono::hours(25));
  CHECK(desk.told == std::vector{Millis(0)});
}

TEST_CASE("how far the server is ahead is told until somebody listens, and again after a step") {
  Desk desk;
  desk.listens = false;
  desk.answer(std::chrono::hours(2));
  CHECK(desk.told.empty());
  desk.listens = true;
  for (int i = 0; i < 3; ++i) desk.answer(std::chrono::hours(2));
  REQUIRE(desk.told.size() == 1);
  CHECK(std::chrono::abs(desk.told.front() - std::chrono::hours(2)) <= std::chrono::seconds(1));
  desk.answer(std::chrono::hours(2), std::chrono::hours(1));
  CHECK(desk.told.size() == 2);
}
