#include "cli/config_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

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

Result<ConfigResult> read_config_files(const std::vector<std::string>& names) {
  std::vector<ConfigFile> files;
  std::vector<ConfigMistake> mistakes;
  for (const auto& name : names) {
    auto text = name == "-" ? read_standard_input() : k8s::read_file(name, kMostBytes);
    if (!text) return std::unexpected(std::move(text.error()));
    ConfigFile file{.name = name == "-" ? "<stdin>" : name, .text = std::move(*text)};
    if (auto manifest = read_manifest(file)) {
      std::ranges::move(manifest->files, std::back_inserter(files));
      std::ranges::move(manifest->mistakes, std::back_inserter(mistakes));
    } else {
      files.push_back(std::move(file));
    }
  }
  auto config = parse_config(files);
  if (mistakes.empty()) return config;
  if (!config) std::ranges::move(config.error(), std::back_inserter(mistakes));
  return ConfigResult(std::unexpected(std::move(mistakes)));
}

}  // namespace dhc::cli
