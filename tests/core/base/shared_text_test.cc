#include "base/shared_text.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc {
namespace {

constexpr std::string_view kLong = "40a44c2a-56f2-4107-99f8-000000000001";

TEST_CASE("a shared text says what it was made of, at every length") {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string text(size, 'x');
    const SharedText shared = text;
    CHECK(shared.view() == text);
    CHECK(shared.empty() == text.empty());
    CHECK(shared.size() == size);
    CHECK(shared.has_body() == (size > 7));
    CHECK(std::string(shared) == text);
  }
}

TEST_CASE("a shared text may hold any byte") {
  const std::string_view nul("a\0b", 3);
  CHECK(SharedText(nul).view() == nul);
  CHECK(SharedText("\xff\xfe") == "\xff\xfe");
}

TEST_CASE("copies of a long text share it, and the last frees it") {
  SharedText first = kLong;
  CHECK(first.is_last());
  {
    const SharedText second = first;
    CHECK(second.view().data() == first.view().data());
    CHECK_FALSE(first.is_last());
  }
  CHECK(first.is_last());
  SharedText third = std::move(first);
  CHECK(third == kLong);
  CHECK(third.is_last());
  third = third.view();
  CHECK(third == kLong);
}

TEST_CASE("shared texts are compared by what they say, not by where it stands") {
  const SharedText a = kLong;
  const SharedText b = std::string(kLong);
  CHECK(a == b);
  CHECK(std::hash<SharedText>{}(a) == std::hash<SharedText>{}(b));
  CHECK((SharedText("b") <=> SharedText("a-long-one-that-stands-apart")) > 0);
  std::set<SharedText> texts;
  std::set<std::string> strings;
  for (const auto* text : {"zz", "", "a", "abcdefgh", "abcdefg", "abcdefghi", "\xff", "Z"}) {
    texts.insert(text);
    strings.insert(text);
  }
  CHECK(std::vector<std::string>(texts.begin(), texts.end()) ==
        std::vector<std::string>(strings.begin(), strings.end()));
}

TEST_CASE("a shared text is read as a string is") {
  const SharedText text = "namespace";
  CHECK(text == "namespace");
  CHECK(std::string("namespace") == text);
  CHECK(text + "/" + "pod" == "namespace/pod");
  CHECK("in " + text == "in namespace");
  CHECK(fmt::format("<{}>", text) == "<namespace>");
  const std::map<std::string, int, std::less<>> map = {{"namespace", 3}};
  CHECK(map.find(text)->second == 3);
}

}  // namespace
}  // namespace dhc
