// What the webhook has told, as the next leader reads it.
#include "domain/incidents/news_state.h"

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"

namespace dhc::news_state_test {

namespace {

RecentNews news_of(int number, std::size_t length = 10, bool follows = false) {
  return {.news = std::make_shared<const News>(
              News{.id = fmt::format("{:016x}", number),
                   .type = "io.device-health.pod.evicted",
                   .subject = "Pod/ml/p",
                   .at = parse_rfc3339("2026-11-20T18:23:16Z").value() + Seconds(number),
                   .data = fmt::format(R"({{"pod":{{"name":"p"}},"device":"{}"}})", std::string(length, 'x'))}),
          .follows = follows};
}

}  // namespace

TEST_CASE("news are read as they were written, in their order") {
  CHECK(news_state_text({}).empty());
  const auto read = parse_news_state(news_state_text({news_of(1), news_of(2)}));
  REQUIRE(read.size() == 2);
  CHECK(read[0] == *news_of(1).news);
  CHECK(read[1] == *news_of(2).news);
}

TEST_CASE("where there is no room the oldest are left out") {
  std::vector<RecentNews> many;
  for (int i = 0; i < 100; ++i) many.push_back(news_of(i, 900));
  const auto text = news_state_text(many);
  CHECK(text.size() <= kNewsStateLimit);
  CHECK(text.size() > kNewsStateLimit - 1200);
  const auto read = parse_news_state(text);
  REQUIRE_FALSE(read.empty());
  CHECK(read.back() == *many.back().news);
  CHECK(read.front() == *many[many.size() - read.size()].news);
  CHECK(news_state_text({news_of(1, kNewsStateLimit)}).empty());
  // What the incidents tell gives way first, and keeps its place.
  for (int i = 0; i < 90; ++i) many[static_cast<std::size_t>(i + 10)].follows = true;
  const auto others = parse_news_state(news_state_text(many));
  REQUIRE(others.size() == read.size());
  CHECK(others.front() == *many[0].news);
  CHECK(others[9] == *many[9].news);
  CHECK(others[10] == *many[many.size() - read.size() + 10].news);
  CHECK(others.back() == *many.back().news);
}

TEST_CASE("what was not written so is left out, and the rest is read") {
  auto text = news_state_text({news_of(1)});
  text.pop_back();
  text += R"(,7,{"id":"x"},{"id":"x","type":"t","at":"soon","data":{}},{"id":"x","type":"t","data":"text"}])";
  CHECK(parse_news_state(text).size() == 1);
  CHECK(parse_news_state("{}").empty());
  CHECK(parse_news_state("[").empty());
}

}  // namespace dhc::news_state_test
