#include "app/record/rerun.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "app/record/kept_lines.h"
#include "app/record/recorder.h"
#include "tests/support/core/stage.h"

using namespace dhc;
using namespace dhc::test;

namespace {

/// A pod's device goes bad, the pod is evicted, another comes.
std::vector<record::Line> recorded_story() {
  std::vector<record::Line> lines;
  Stage stage;
  stage.controller().record_to(
      std::make_shared<record::Recorder>([&](record::Line line) { lines.push_back(std::move(line)); }));
  stage.node("node-a", 4);
  stage.pod({.name = "web-1", .device = "gpu-0"});
  stage.pod({.name = "web-2", .device = "gpu-1"});
  stage.run_for(Seconds(30), Seconds(10));
  stage.report("web-1", k8s::Health::Unhealthy);
  stage.node("node-a", 4, 3);
  stage.run_for(std::chrono::minutes(2), Seconds(10));
  stage.remove_pod("web-1");
  stage.pod({.name = "web-3", .device = "gpu-2"});
  stage.run_for(std::chrono::minutes(3), Seconds(20));
  stage.controller().record_to(nullptr);
  return lines;
}

std::string file_of(std::int64_t number, const std::string& text) { return record::file_line("r", number).text + text; }

std::string text_of(const std::vector<record::Line>& lines) {
  std::string text;
  for (const auto& line : lines) text += line.text;
  return text;
}

Status feed(record::Rerun& rerun, std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (auto fed = rerun.feed(text.substr(0, end)); !fed) return fed;
    text.remove_prefix(end + 1);
  }
  return {};
}

/// The same recording in two files, the second from the first moment at which one may begin after `at` lines.
struct TwoFiles {
  std::string first = record::file_line("r", 1).text;
  std::string second;
};
TwoFiles cut(const std::vector<record::Line>& lines, std::size_t at) {
  TwoFiles files;
  record::KeptLines kept;
  std::size_t next = 0;
  while (next < lines.size() && (next < at || !kept.may_end())) {
    kept.note(lines[next], static_cast<std::int64_t>(files.first.size()));
    files.first += lines[next++].text;
  }
  files.second = record::file_line("r", 2).text;
  for (const auto& part : kept.parts()) {
    const auto text =
        files.first.substr(static_cast<std::size_t>(part.span.offset), static_cast<std::size_t>(part.span.size));
    files.second += part.count ? record::with_count(text, *part.count) : text;
  }
  files.second += record::begun_line().text;
  for (; next < lines.size(); ++next) files.second += lines[next].text;
  return files;
}

}  // namespace

TEST_CASE("how long a clock has been in doubt is recorded, also while nothing else comes") {
  using std::chrono::hours;
  Stage stage;
  stage.node("node-a", 4);
  stage.run_for(Seconds(30), Seconds(10));
  std::vector<std::string> lines;
  stage.controller().record_to(
      std::make_shared<record::Recorder>([&](const record::Line& line) { lines.push_back(line.text); }));
  const auto taken_after = [&](Millis time, Millis step) {
    lines.clear();
    auto now = stage.now();
    now.mono += time;
    now.wall += time + step;
    (void)stage.controller().take({}, now);
    return std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with(R"({"take":)"); });
  };
  CHECK(taken_after(Millis(1), Millis(0)) == 0);
  CHECK(taken_after(Millis(2), hours(25)) == 2);  // also the moment before, from which the believed clock goes on
  CHECK(taken_after(Millis(3), hours(25)) == 1);
  CHECK(taken_after(Millis(4), Millis(0)) == 0);
  stage.controller().record_to(nullptr);
}

TEST_CASE("A recording replays to the same decisions, and says what it holds") {
  record::Rerun rerun;
  REQUIRE(feed(rerun, file_of(1, text_of(recorded_story()))));
  const auto& report = rerun.report();
  CHECK(report.differences == 0);
  CHECK(report.runs == 1);
  CHECK(report.files == 1);
  CHECK(report.not_compared == 0);
  CHECK(report.actions.at("EvictPod") == 1);
  CHECK(report.plans > 20);
}

TEST_CASE("A recording that says what is not decided from it differs, and where") {
  auto text = text_of(recorded_story());
  const auto at = text.find("\"do\":[{\"do\":\"EvictPod\"");
  REQUIRE(at != std::string::npos);
  text.replace(text.find("web-1", at), 5, "web-9");
  record::Rerun rerun;
  REQUIRE(feed(rerun, file_of(1, text)));
  CHECK(rerun.report().differences == 1);
  CHECK(rerun.report().first.front().recorded.find("web-9") != std::string::npos);
  CHECK(rerun.report().first.front().rerun.find("web-1") != std::string::npos);
}

TEST_CASE("Cut into files anywhere it is the same recording, and each file begins one") {
  const auto lines = recorded_story();
  for (std::size_t at = 1; at < lines.size(); at += lines.size() / 8) {
    CAPTURE(at);
    const auto files = cut(lines, at);
    record::Rerun both;
    REQUIRE(feed(both, files.first));
    REQUIRE(feed(both, files.second));
    CHECK(both.report().differences == 0);
    CHECK(both.report().runs == 1);
    CHECK(both.report().not_compared == 0);
    record::Rerun alone;
    REQUIRE(feed(alone, files.second));
    CHECK(alone.report().not_compared == 1);
    CHECK(alone.report().runs == 1);
  }
}

TEST_CASE("A recording by a version that did not watch a kind yet replays as if the server did not serve it") {
  auto lines = recorded_story();
  const auto count = lines.size();
  std::erase_if(lines, [](const auto& line) { return line.what == record::What::List && line.key == "PodGroup"; });
  REQUIRE(lines.size() < count);
  record::Rerun rerun;
  REQUIRE(feed(rerun, file_of(1, text_of(lines))));
  CHECK(rerun.report().differences == 0);
  CHECK(rerun.report().actions.at("EvictPod") == 1);
}

TEST_CASE("A file that is missing in the middle is an error with a remedy") {
  const auto lines = recorded_story();
  const auto files = cut(lines, lines.size() / 2);
  record::Rerun rerun;
  REQUIRE(feed(rerun, files.first));
  const auto fed = feed(rerun, file_of(3, text_of(lines)));
  REQUIRE_FALSE(fed);
  CHECK(fed.error().message ==
        "file 3 of the run r comes after file 1: a file between them is missing; bring it back, or replay the files "
        "from this one on alone");
}

TEST_CASE("Another run begins anew") {
  const auto text = text_of(recorded_story());
  record::Rerun rerun;
  REQUIRE(feed(rerun, file_of(1, text)));
  REQUIRE(feed(rerun, record::file_line("s", 1).text + text));
  CHECK(rerun.report().runs == 2);
  CHECK(rerun.report().differences == 0);
}

TEST_CASE("What does not begin with the line of a file is refused") {
  record::Rerun rerun;
  const auto fed = rerun.feed("{\"leads\":true}");
  REQUIRE_FALSE(fed);
  CHECK(fed.error().message == "a recording begins with a line `recording`");
}

TEST_CASE("An update that changes nothing but the version is not recorded") {
  std::vector<record::Line> lines;
  Stage stage;
  stage.controller().record_to(
      std::make_shared<record::Recorder>([&](record::Line line) { lines.push_back(std::move(line)); }));
  stage.node("node-a", 4);
  stage.pod({.name = "web-1", .device = "gpu-0"});
  stage.settle();
  const auto before = lines.size();
  for (int i = 0; i < 100; ++i) {
    stage.upsert_pod("web-1");
    stage.turn();
  }
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(before));
  CHECK(std::ranges::none_of(lines, [](const auto& line) { return line.what == record::What::Object; }));
  stage.controller().record_to(nullptr);
}
