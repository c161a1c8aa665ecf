#include "app/live/overview_log.h"

#include <doctest/doctest.h>

#include "base/rfc3339.h"

using dhc::Overview;
using dhc::OverviewLog;
using Part = OverviewLog::Part;

namespace {
const dhc::Now kThen{.mono = {}, .wall = dhc::parse_rfc3339("2026-11-20T18:23:16Z").value()};

OverviewLog log_of(Overview facts, Overview cluster, const std::string& name = "log") {
  OverviewLog log(name);
  CHECK(log.take(Part::Facts, std::move(facts)));
  CHECK(log.take(Part::Cluster, std::move(cluster)));
  return log;
}

std::string place_of(const OverviewLog& log) { return log.since("", kThen).value().place; }

/// What a reader in this place is told, without the event's frame.
std::string told(const OverviewLog& log, std::string_view place) {
  const auto piece = log.since(place, kThen);
  return piece ? piece->text : "nothing";
}
}  // namespace

TEST_CASE("a reader without a place gets everything, in one event that a browser can read, once both parts are there") {
  OverviewLog log("log");
  CHECK(told(log, "") == "nothing");
  CHECK(log.take(Part::Facts, {{"controller", R"({"mode":"observe"})"}}));
  CHECK(told(log, "") == "nothing");
  CHECK(log.take(Part::Cluster, {}));
  CHECK(told(log, "") ==
        "event: whole\nid: log.2\nretry: 1000\n"
        R"(data: {"now":1795198996000,"set":{"controller":{"mode":"observe"}},"gone":[]})"
        "\n\n");
}

TEST_CASE("a reader gets what has changed since its place, and nothing while nothing has") {
  auto log = log_of({{"controller", "1"}}, {{"node/a", "1"}, {"node/b", "1"}});
  const auto place = place_of(log);
  CHECK(told(log, place) == "nothing");
  CHECK_FALSE(log.take(Part::Cluster, {{"node/a", "1"}, {"node/b", "1"}}));
  CHECK(told(log, place) == "nothing");
  CHECK(log.take(Part::Cluster, {{"node/b", "2"}, {"node/c", "1"}}));
  CHECK(told(log, place).find(R"("set":{"node/b":2,"node/c":1},"gone":["node/a"]})") != std::string::npos);
  CHECK(told(log, place).starts_with("event: change\n"));
}

TEST_CASE("of keys of which only some are told the others stay, and what else goes is gone") {
  auto log = log_of({}, {{"limits", "1"}, {"node/a", "1"}, {"node/b", "1"}, {"verdict/x", "1"}});
  const auto place = place_of(log);
  CHECK(log.take(Part::Cluster, {{"limits", "1"}, {"node/b", "2"}}, "node/"));
  CHECK(told(log, place).find(R"("set":{"node/b":2},"gone":["verdict/x"]})") != std::string::npos);
  CHECK(told(log, "").find(R"("set":{"limits":1,"node/a":1,"node/b":2},"gone":[]})") != std::string::npos);
  CHECK(log.take(Part::Cluster, {{"limits", "1"}, {"node/b", "2"}}));
  CHECK(told(log, place).find(R"("gone":["verdict/x","node/a"])") != std::string::npos);
}

TEST_CASE("a slow reader gets the last of many changes in one piece, and what came and went in between not at all") {
  auto log = log_of({}, {{"node/a", "0"}});
  const auto place = place_of(log);
  for (int i = 1; i <= 100; ++i) CHECK(log.take(Part::Cluster, {{"node/a", std::to_string(i)}}));
  CHECK(log.take(Part::Cluster, {{"node/a", "100"}, {"node/b", "1"}}));
  CHECK(log.take(Part::Cluster, {{"node/a", "100"}}));
  CHECK(told(log, place).find(R"("set":{"node/a":100},"gone":["node/b"]})") != std::string::npos);
}

TEST_CASE("what went away and came back is there, not gone") {
  auto log = log_of({}, {{"node/a", "1"}});
  const auto place = place_of(log);
  CHECK(log.take(Part::Cluster, {}));
  CHECK(log.take(Part::Cluster, {{"node/a", "1"}}));
  CHECK(told(log, place).find(R"("set":{"node/a":1},"gone":[]})") != std::string::npos);
}

TEST_CASE("one part's change leaves the other's entries alone") {
  auto log = log_of({{"controller", "1"}}, {{"node/a", "1"}});
  const auto place = place_of(log);
  CHECK(log.take(Part::Facts, {{"controller", "2"}}));
  CHECK(told(log, place).find(R"("set":{"controller":2},"gone":[]})") != std::string::npos);
}

TEST_CASE("a place of another log, of the future, or that is none, begins anew") {
  const auto log = log_of({}, {{"node/a", "1"}});
  const auto other = log_of({}, {{"node/a", "1"}}, "other");
  CHECK(told(log, place_of(log)) == "nothing");
  for (const std::string& place : {place_of(other), std::string("log.3"), std::string("log."), std::string("log.1x"),
                                   std::string("."), std::string("log.99999999999999999999"), std::string("garbage")}) {
    CAPTURE(place);
    CHECK(told(log, place).starts_with("event: whole\n"));
  }
}

TEST_CASE("a reader that has missed more removals than are remembered begins anew, one that has not does not") {
  Overview many;
  for (std::size_t i = 0; i <= OverviewLog::kMostGone; ++i) many.emplace("node/" + std::to_string(i), "1");
  auto log = log_of({}, many);
  const auto before = place_of(log);
  many.erase("node/0");
  CHECK(log.take(Part::Cluster, many));
  const auto after = place_of(log);
  CHECK(told(log, before).starts_with("event: change\n"));
  CHECK(log.take(Part::Cluster, {}));
  CHECK(told(log, before).starts_with("event: whole\n"));
  CHECK(told(log, after).starts_with("event: change\n"));
}

TEST_CASE("a key with quotes, line ends and bytes that are no text stays one key on one line") {
  const auto log = log_of({}, {{"verdict/\"\n\xff<b>", "1"}});
  const auto text = told(log, "");
  CHECK(text.find(R"("verdict/\"\n)"
                  "\xef\xbf\xbd<b>\":1") != std::string::npos);
}
