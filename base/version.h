#pragma once

#include <string_view>

namespace dhc {

/// The program's version, as in the project's CMakeLists.txt: "0.2.0".
std::string_view version() noexcept;

}  // namespace dhc
