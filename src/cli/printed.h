#pragma once
#include <string>
#include <string_view>

namespace dhc::cli {

/// What a command printed and how it ends.
struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

/// It could not be done, and why.
[[nodiscard]] inline Printed failure(std::string_view why) {
  return {.code = 1, .out = {}, .err = "error: " + std::string(why) + "\n"};
}

}  // namespace dhc::cli
