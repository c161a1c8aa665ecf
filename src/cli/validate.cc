#include "cli/validate.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "domain/policy/config.h"
#include "domain/policy/config_text.h"
#include "k8s-client/auth/file.h"

namespace dhc::cli {

namespace {
// The parser itself takes less; this bounds what is held of a device or a pipe without end.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 64UL * 1024> piece{};
  while (text.size() <= kMostBytes) {
    const auto got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::Invalid, fmt::format("standard input: {}", std::strerror(errno)));
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return fail(ErrorKind::Invalid, "standard input: larger than 16 MiB");
}

}  // namespace

Printed validate(const ValidateOptions& options) {
  std::vector<ConfigFile> files;
  std::vector<ConfigMistake> mistakes;
  for (const auto& name : options.files) {
    auto text = name == "-" ? read_standard_input() : k8s::read_file(name, kMostBytes);
    if (!text) return {.code = 1, .out = {}, .err = fmt::format("error: {}\n", text.error().message)};
    ConfigFile file{.name = name == "-" ? "<stdin>" : name, .text = std::move(*text)};
    if (auto manifest = read_manifest(file)) {
      std::ranges::move(manifest->files, std::back_inserter(files));
      std::ranges::move(manifest->mistakes, std::back_inserter(mistakes));
    } else {
      files.push_back(std::move(file));
    }
  }
  const auto config = parse_config(files);
  if (!config) std::ranges::copy(config.error(), std::back_inserter(mistakes));
  Printed printed;
  if (mistakes.empty()) {
    printed.out = format_config(*config);
    for (const auto& warning : config->warnings) printed.err += format_warning(warning) + "\n";
    return printed;
  }
  printed.code = 1;
  for (const auto& mistake : mistakes) printed.out += format_mistake(mistake) + "\n";
  printed.err = fmt::format("{} {}\n", mistakes.size(), mistakes.size() == 1 ? "mistake" : "mistakes");
  return printed;
}

}  // namespace dhc::cli
