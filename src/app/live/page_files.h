#pragma once
#include <string_view>

namespace dhc {

// The live page's files, as they stand in this folder; the build makes what defines them (cmake/embed.cmake).

[[nodiscard]] std::string_view page_html();
[[nodiscard]] std::string_view page_css();
[[nodiscard]] std::string_view page_js();
[[nodiscard]] std::string_view model_js();
[[nodiscard]] std::string_view parts_js();
[[nodiscard]] std::string_view icon_svg();

}  // namespace dhc
