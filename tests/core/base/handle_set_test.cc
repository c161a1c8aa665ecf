#include "base/handle_set.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/shared_text.h"

namespace dhc {
namespace {

struct IsFree {
  bool operator()(const SharedText& text) const { return text.empty(); }
};
struct IsUsed {
  bool operator()(const SharedText& text) const { return !text.is_last(); }
};
using Texts = HandleSet<SharedText, std::hash<SharedText>, std::equal_to<>, IsFree, IsUsed>;

SharedText numbered(int number) { return "a text that stands apart, " + std::to_string(number); }

TEST_CASE("a handle set gives equal handles one body") {
  Texts set;
  std::vector<SharedText> held;
  for (int i = 0; i < 1000; ++i) held.push_back(set.take_in(numbered(i)).first);
  for (int i = 0; i < 1000; ++i) {
    const auto [known, is_new] = set.take_in(numbered(i));
    CHECK_FALSE(is_new);
    CHECK(known.view().data() == held[static_cast<std::size_t>(i)].view().data());
  }
  CHECK(set.size() == 1000);
}

/// All have one hash, as names that a tenant has chosen.
struct OneHash {
  std::size_t operator()(const SharedText& /*text*/) const { return 1; }
};
struct Compared {
  static inline std::size_t times = 0;
  bool operator()(const SharedText& a, const SharedText& b) const {
    ++times;
    return a == b;
  }
};

TEST_CASE("a handle set takes no longer where all hashes are one, and gives each its own text") {
  HandleSet<SharedText, OneHash, Compared, IsFree, IsUsed> set;
  std::vector<SharedText> held;
  for (int i = 0; i < 10'000; ++i) {
    const auto [known, is_new] = set.take_in(numbered(i));
    CHECK(known == numbered(i));
    held.push_back(known);
  }
  CHECK(Compared::times < 10'000 * 200);
  CHECK(set.size() <= 2 * decltype(set)::kLongestRun);
  const auto last = set.take_in(numbered(9'999));
  CHECK_FALSE(last.second);
}

TEST_CASE("a handle set keeps what nobody holds for a while only, whatever comes") {
  Texts set;
  std::vector<SharedText> held;
  for (int i = 0; i < 100; ++i) held.push_back(set.take_in(numbered(i)).first);
  std::size_t most = 0;
  for (int i = 100; i < 100'000; ++i) {
    set.take_in(numbered(i));
    most = std::max(most, set.size());
  }
  CHECK(most < 400);
  for (int i = 0; i < 100; ++i) {
    CHECK(set.take_in(numbered(i)).first.view().data() == held[static_cast<std::size_t>(i)].view().data());
  }
}

}  // namespace
}  // namespace dhc
