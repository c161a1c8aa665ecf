// usage: suspects [SCHEDULES]: how often the right workload is suspected where it is known who is guilty, in Markdown.
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "bench/suspects/planted.h"

int main(int argc, char** argv) {
  std::size_t schedules = 1700;  // of each of six truths
  if (argc > 1) {
    const auto [end, error] = std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), schedules);
    if (argc > 2 || error != std::errc() || *end != '\0' || schedules == 0) {
      fmt::print(stderr, "usage: suspects [SCHEDULES]\n");
      return 2;
    }
  }
  fmt::print("{}", dhc::planted::table_of(dhc::planted::play_all(schedules)));
}
