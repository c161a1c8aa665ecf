#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cli/plugin/sight.h"

namespace dhc::cli {

/// How large the terminal is, in characters.
struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// The live view as lines, `rows` at most and none longer than `columns`: a head with counts, what a reader has to
/// know, then the table of devices from row `first` on, and at the bottom which keys do what. A table that ends above
/// `first` is shown from its last page on.
struct Screen {
  std::vector<std::string> lines;
  std::size_t first = 0;  ///< The table's row that is on top.
};
[[nodiscard]] Screen screen_of(const Sight& sight, const ScreenSize& size, std::size_t first, bool is_coloured = false);

/// The bytes that show it on an ANSI terminal: from the top left, each line to its end, and the rest empty.
[[nodiscard]] std::string screen_bytes(const Screen& screen);

}  // namespace dhc::cli
