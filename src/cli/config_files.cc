#include "cli/config_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "domain/policy/manifest.h"
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

/// Notes what of a file was not read.
void note_rest(const std::string& file, const PackedConfig& packed, ReadConfig& read) {
  std::size_t count = 0;
  std::vector<std::string> kinds;
  for (const auto& [kind, objects] : packed.skipped) {
    count += objects;
    kinds.push_back(objects == 1 ? kind : fmt::format("{} {}", objects, kind));
  }
  if (count > 0) {
    read.skipped.push_back(fmt::format("{}: skipped {} {} without policies ({})", file, count,
                                       count == 1 ? "object" : "objects", fmt::join(kinds, ", ")));
  }
  if (!packed.presets.empty()) {
    read.presets.push_back(
        fmt::format("{}: its presets ({}) are in the chart: give what `helm template` prints instead", file,
                    fmt::join(packed.presets, ", ")));
  }
}

}  // namespace

Result<ReadConfig> read_config_pieces(const std::vector<std::string>& names) {
  std::vector<ConfigFile> files;
  std::vector<ConfigMistake> mistakes;
  ReadConfig read;
  for (const auto& name : names) {
    auto text = name == "-" ? read_standard_input() : k8s::read_file(name, kMostBytes);
    if (!text) return std::unexpected(std::move(text.error()));
    ConfigFile file{.name = name == "-" ? "<stdin>" : name, .text = std::move(*text)};
    if (auto packed = unpack_config(file)) {
      note_rest(file.name, *packed, read);
      std::ranges::move(packed->files, std::back_inserter(files));
      std::ranges::move(packed->mistakes, std::back_inserter(mistakes));
    } else {
      files.push_back(std::move(file));
    }
  }
  auto config = parse_config(files);
  if (!mistakes.empty()) {
    if (!config) std::ranges::move(config.error(), std::back_inserter(mistakes));
    config = std::unexpected(std::move(mistakes));
  }
  read.config = std::move(config);
  return read;
}

Result<ConfigResult> read_config_files(const std::vector<std::string>& names) {
  auto read = read_config_pieces(names);
  if (!read) return std::unexpected(std::move(read.error()));
  if (!read->presets.empty()) return fail(ErrorKind::Invalid, read->presets.front());
  return std::move(read->config);
}

}  // namespace dhc::cli
