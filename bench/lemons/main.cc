// usage: lemons infinitehbd|titan FILE: what halfLife and quarantineAbove would have done, in Markdown.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "bench/lemons/tables.h"
#include "domain/tuning/published_traces.h"

int main(int argc, char** argv) {
  const std::string_view format = argc == 3 ? argv[1] : "";
  if (format != "infinitehbd" && format != "titan") {
    fmt::print(stderr, "usage: lemons infinitehbd|titan FILE\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  if (!file) {
    fmt::print(stderr, "{}: cannot be read\n", argv[2]);
    return 1;
  }
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto trace = format == "titan" ? dhc::tuning::read_titan(text) : dhc::tuning::read_infinitehbd(text);
  if (!trace) {
    fmt::print(stderr, "{}: {}\n", argv[2], trace.error());
    return 1;
  }
  fmt::print("{}", dhc::lemons::tables_of(*trace));
}
