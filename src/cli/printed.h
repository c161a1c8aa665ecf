#pragma once
#include <string>

namespace dhc::cli {

/// What a command printed and how it ends.
struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

}  // namespace dhc::cli
