#include "cli/record_reading.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace dhc::cli {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20U;

/// The lines of one file, one after the other.
class LineFile {
 public:
  explicit LineFile(std::string name) : name_(std::move(name)), file_(name_, std::ios::binary) {}

  /// To the next line that is not empty; false: there is none. An error names the file.
  [[nodiscard]] Result<bool> next() {
    if (!file_.is_open()) return fail(ErrorKind::Invalid, fmt::format("{}: cannot be opened", name_));
    while (true) {
      const auto end = text_.find('\n', std::max(at_, sought_));
      if (end != std::string::npos) {
        ++number_;
        line_ = {at_, end - at_};
        at_ = end + 1;
        if (line_.second > 0) return true;
        continue;
      }
      if (!file_) break;
      text_.erase(0, std::exchange(at_, 0));
      sought_ = text_.size();
      text_.resize(sought_ + kReadAtOnce);
      file_.read(text_.data() + sought_, static_cast<std::streamsize>(kReadAtOnce));
      text_.resize(sought_ + static_cast<std::size_t>(file_.gcount()));
    }
    if (file_.bad()) return fail(ErrorKind::Invalid, fmt::format("{}: cannot be read", name_));
    return false;
  }

  /// Until the next one is asked for.
  [[nodiscard]] std::string_view line() const { return std::string_view(text_).substr(line_.first, line_.second); }

  [[nodiscard]] Status feed_to(const std::function<Status(std::string_view line)>& feed) const {
    auto fed = feed(line());
    if (!fed) fed.error().message = fmt::format("{}:{}: {}", name_, number_, fed.error().message);
    return fed;
  }

  void remark_torn(const std::function<void(std::string)>& remark) const {
    if (at_ == text_.size()) return;
    remark(fmt::format("{}:{}: the last line is torn, as a crash leaves it: the replay of this file ends before it",
                       name_, number_ + 1));
  }

 private:
  std::string name_;
  std::ifstream file_;
  std::string text_;
  std::size_t at_ = 0;      // behind the line
  std::size_t sought_ = 0;  // so far of `text_` there is no other end of a line
  std::size_t number_ = 0;
  std::pair<std::size_t, std::size_t> line_;  // where, and how long
};

/// A file among several, with the time of its line.
struct TimedFile {
  std::unique_ptr<LineFile> file;
  std::optional<WallTime> at;
};

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
    LineFile file(name);
    while (true) {
      const auto has_line = file.next();
      if (!has_line) return std::unexpected(has_line.error());
      if (!*has_line) break;
      if (auto fed = file.feed_to(feed); !fed) return fed;
    }
    file.remark_torn(remark);
  }
  return {};
}

Status read_lines_by_time(const std::vector<std::string>& files,
                          const std::function<std::optional<WallTime>(std::string_view line)>& time_of,
                          const std::function<Status(std::string_view line)>& feed,
                          const std::function<void(std::string)>& remark) {
  if (files.size() == 1) return read_lines(files, feed, remark);
  std::vector<TimedFile> open;
  for (const auto& name : files) open.push_back({std::make_unique<LineFile>(name), std::nullopt});
  // Of each file the time of its next line; of one that has ended nothing.
  const auto advance = [&](TimedFile& one) -> Result<bool> {
    auto has_line = one.file->next();
    if (!has_line) return has_line;
    if (!*has_line) one.file->remark_torn(remark);
    if (const auto at = *has_line ? time_of(one.file->line()) : std::nullopt)
      one.at = std::max(one.at.value_or(*at), *at);
    return has_line;
  };
  for (auto one = open.begin(); one != open.end();) {
    const auto has_line = advance(*one);
    if (!has_line) return std::unexpected(has_line.error());
    one = *has_line ? one + 1 : open.erase(one);
  }
  while (!open.empty()) {
    const auto first = std::ranges::min_element(open, {}, &TimedFile::at);
    if (auto fed = first->file->feed_to(feed); !fed) return fed;
    const auto has_line = advance(*first);
    if (!has_line) return std::unexpected(has_line.error());
    if (!*has_line) open.erase(first);
  }
  return {};
}

}  // namespace dhc::cli
