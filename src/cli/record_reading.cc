#include "cli/record_reading.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace dhc::cli {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20U;

/// One file; how many lines it has had is counted in `number`.
Status read_file_lines(const std::string& name, const std::function<Status(std::string_view line)>& feed,
                       const std::function<void(std::string)>& remark) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return fail(ErrorKind::Invalid, fmt::format("{}: cannot be opened", name));
  std::string text;
  std::string piece(kReadAtOnce, '\0');
  std::size_t number = 0;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(file.gcount()));
    std::size_t at = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
      ++number;
      const auto line = std::string_view(text).substr(at, end - at);
      at = end + 1;
      if (line.empty()) continue;
      if (auto fed = feed(line); !fed) {
        fed.error().message = fmt::format("{}:{}: {}", name, number, fed.error().message);
        return fed;
      }
    }
    text.erase(0, at);
  }
  if (file.bad()) return fail(ErrorKind::Invalid, fmt::format("{}: cannot be read", name));
  if (!text.empty()) {
    remark(fmt::format("{}:{}: the last line is torn, as a crash leaves it: the replay of this file ends before it",
                       name, number + 1));
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> recordings_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::exists(path, error)) return fail(ErrorKind::Invalid, fmt::format("{}: no such file or folder", path));
      files.push_back(path);
      continue;
    }
    const auto before = files.size();
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
    }
    if (error) return fail(ErrorKind::Invalid, fmt::format("{}: {}", path, error.message()));
    if (files.size() == before)
      return fail(ErrorKind::Invalid, fmt::format("{}: no recording (*.jsonl) is in this folder", path));
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

Status read_lines(const std::vector<std::string>& files, const std::function<Status(std::string_view line)>& feed,
                  const std::function<void(std::string)>& remark) {
  for (const auto& name : files) {
    if (auto read = read_file_lines(name, feed, remark); !read) return read;
  }
  return {};
}

}  // namespace dhc::cli
