#include "base/slim_vector.h"

#include <iterator>
#include <rapidcheck.h>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace dhc {
namespace {

TEST_CASE("a slim vector does what a vector does") {
  CHECK(sizeof(SlimVector<std::string>) == sizeof(void*));
  CHECK(rc::check([] {
    SlimVector<std::string> slim;
    std::vector<std::string> plain;
    const auto place = [&] { return *rc::gen::inRange<std::size_t>(0, plain.size() + 1); };
    for (int step = 0; step < 40; ++step) {
      const auto text = std::to_string(step) + " is long enough to stand apart";
      switch (*rc::gen::inRange(0, 7)) {
        case 0:
          slim.push_back(text);
          plain.push_back(text);
          break;
        case 1: {
          const auto at = place();
          slim.insert(slim.begin() + at, text);
          plain.insert(plain.begin() + static_cast<std::ptrdiff_t>(at), text);
          break;
        }
        case 2:
          if (plain.empty()) break;
          slim.push_back(slim.front());
          plain.push_back(std::string(plain.front()));
          break;
        case 3: {
          const auto first = place();
          const auto last = *rc::gen::inRange(first, plain.size() + 1);
          slim.erase(slim.begin() + first, slim.begin() + last);
          plain.erase(plain.begin() + static_cast<std::ptrdiff_t>(first),
                      plain.begin() + static_cast<std::ptrdiff_t>(last));
          break;
        }
        case 4: {
          const auto copy = slim;
          slim = copy;
          slim.shrink_to_fit();
          break;
        }
        case 5: {
          const auto is = [&](const std::string& one) { return one.size() % 2 == static_cast<std::size_t>(step % 2); };
          RC_ASSERT(erase_if(slim, is) == std::erase_if(plain, is));
          break;
        }
        default: {
          auto taken = std::move(slim);
          slim = std::move(taken);
          break;
        }
      }
      RC_ASSERT(std::vector<std::string>(slim.begin(), slim.end()) == plain);
      RC_ASSERT(slim.size() == plain.size());
    }
  }));
}

TEST_CASE("an empty slim vector holds no memory") {
  SlimVector<int> slim = {1, 2, 3};
  slim.clear();
  CHECK(slim.capacity() == 0);
  CHECK(slim.empty());
  CHECK(slim == SlimVector<int>());
}

}  // namespace
}  // namespace dhc
