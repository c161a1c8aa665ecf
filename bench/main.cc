#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "bench/benches.h"

// usage: bench [PART...]     all parts without any
int main(int argc, char** argv) {
  using namespace dhc::bench;
  struct Part {
    std::string_view name;
    bool (*run)();
  };
  const Part parts[] = {{"decode", [] { return decode(), true; }},
                        {"memory", world_memory},
                        {"reaction", reaction},
                        {"taints", taints},
                        {"many-devices", [] { return many_devices(), true; }},
                        {"live-page", [] { return live_page(), true; }},
                        {"replay", replay}};
  const std::span wanted(argv + 1, static_cast<std::size_t>(argc - 1));
  for (const std::string_view name : wanted) {
    if (std::ranges::find(parts, name, &Part::name) != std::end(parts)) continue;
    fmt::print(stderr, "bench: no part is called {}\n", name);
    return 2;
  }
  bool is_good = true;
  for (const auto& part : parts) {
    if (wanted.empty() || std::ranges::find(wanted, part.name) != wanted.end()) is_good = part.run() && is_good;
  }
  return is_good ? 0 : 1;
}
