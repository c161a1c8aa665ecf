#include "k8s-client/protocol/line_splitter.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using dhc::k8s::LineSplitter;

namespace {

struct Seen {
  std::vector<std::string> lines;
  int too_long = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

void feed(LineSplitter& splitter, std::string_view bytes, Seen& seen) {
  splitter.feed(bytes, [&](std::string_view line) { seen.lines.emplace_back(line); }, [&] { ++seen.too_long; });
}

}  // namespace

TEST_CASE("a stream cut at any two bytes gives the same lines") {
  const std::string text = "first\n\nthe second line\nlonger than sixteen bytes\nlast\nunfinished";
  Seen whole;
  LineSplitter once(16);
  feed(once, text, whole);
  CHECK(whole.lines == std::vector<std::string>{"first", "", "the second line", "last"});
  CHECK(whole.too_long == 1);
  CHECK(once.held() == 10);
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      Seen cut;
      LineSplitter splitter(16);
      feed(splitter, text.substr(0, a), cut);
      feed(splitter, text.substr(a, b - a), cut);
      feed(splitter, text.substr(b), cut);
      REQUIRE(cut == whole);
    }
  }
}

TEST_CASE("a line of exactly the cap is read and one byte more is skipped to its newline") {
  Seen seen;
  LineSplitter splitter(4);
  feed(splitter, "abcd\nabcde\nxy\n", seen);
  CHECK(seen.lines == std::vector<std::string>{"abcd", "xy"});
  CHECK(seen.too_long == 1);
}

TEST_CASE("an endless line is reported once and holds nothing") {
  Seen seen;
  LineSplitter splitter(64);
  for (int i = 0; i < 10'000; ++i) {
    feed(splitter, "0123456789abcdef", seen);
    REQUIRE(splitter.held() <= 64);
  }
  CHECK(seen.too_long == 1);
  CHECK(splitter.held() == 0);
  feed(splitter, "\nnext\n", seen);
  CHECK(seen.lines == std::vector<std::string>{"next"});
}

TEST_CASE("reset forgets an unfinished line, a skipped one too") {
  Seen seen;
  LineSplitter splitter(8);
  feed(splitter, "half", seen);
  splitter.reset();
  feed(splitter, "a\nfar too long a line", seen);
  splitter.reset();
  feed(splitter, "b\n", seen);
  CHECK(seen.lines == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a line may reset the splitter that gave it") {
  LineSplitter splitter(64);
  std::vector<std::string> lines;
  const auto take = [&](std::string_view line) {
    splitter.reset();
    lines.emplace_back(line);
  };
  splitter.feed("ab", take, [] {});
  splitter.feed("cd\nrest", take, [] {});
  CHECK(lines == std::vector<std::string>{"abcd"});
  CHECK(splitter.held() == 4);
}
