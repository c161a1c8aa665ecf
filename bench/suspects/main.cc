// usage: suspects FROM TO FILE: plays the schedules with these numbers, beside those that the file has, and prints the
// table of all, in Markdown.
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "bench/suspects/planted.h"

namespace {

bool read_number(std::string_view text, std::size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dhc::planted;
  std::size_t from = 0;
  std::size_t to = 0;
  if (argc != 4 || !read_number(argv[1], from) || !read_number(argv[2], to)) {
    fmt::print(stderr, "usage: suspects FROM TO FILE\n");
    return 2;
  }
  // A file's first line says up to which number it has all.
  std::map<Truth, Tally> tallies;
  std::size_t next = from;
  if (std::ifstream file(argv[3]); file) {
    std::string first;
    std::getline(file, first);
    const std::string rest((std::istreambuf_iterator<char>(file)), {});
    const auto blank = first.find(' ');
    std::size_t began = 0;
    if (blank == std::string::npos || !read_number(first.substr(0, blank), began) ||
        !read_number(first.substr(blank + 1), next) || !add_lines(rest, tallies) || began != from) {
      fmt::print(stderr, "{} is of other schedules: remove it\n", argv[3]);
      return 2;
    }
  }
  constexpr std::size_t kSaved = 50;
  for (; next < to; ++next) {
    tallies[truth_of(next)].add(play(truth_of(next), next));
    if ((next + 1 - from) % kSaved != 0 && next + 1 != to) continue;
    std::ofstream(argv[3]) << from << ' ' << next + 1 << '\n' << lines_of(tallies);
  }
  fmt::print("{}", table_of(tallies));
}
