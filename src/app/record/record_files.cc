#include "app/record/record_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/record/kept_lines.h"
#include "app/record/lines.h"

namespace dhc::record {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::size_t kPiece = std::size_t{1} << 20U;

std::string system_words(int error) { return std::strerror(error); }

struct OldFile {
  fs::path path;
  std::int64_t size = 0;
};

/// What others have put there is theirs.
bool is_recording_at(const fs::path& path) {
  std::string start(kTellingStart, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return is_recording(start);
}

/// By age.
std::vector<OldFile> recordings_in(const fs::path& folder) {
  std::vector<OldFile> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".jsonl" || !is_recording_at(entry.path())) continue;
    std::error_code unknown;
    const auto size = entry.file_size(unknown);
    if (!unknown) files.push_back({.path = entry.path(), .size = static_cast<std::int64_t>(size)});
  }
  std::ranges::sort(files, {}, &OldFile::path);  // a run's name begins with its time
  return files;
}

/// One open file, appended to.
class Appender {
 public:
  Appender() = default;
  ~Appender() { close(); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  /// The system's error, or 0.
  int open(const fs::path& path) {
    close();
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_ = 0;
    return fd_ < 0 ? errno : 0;
  }
  int write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno;
      size_ += count;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return 0;
  }
  int read(const Span& span, std::string& bytes) const {
    bytes.resize(static_cast<std::size_t>(span.size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto count = ::pread(fd_, bytes.data() + done, bytes.size() - done,
                                 static_cast<off_t>(span.offset) + static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return count < 0 ? errno : EIO;
      done += static_cast<std::size_t>(count);
    }
    return 0;
  }
  [[nodiscard]] std::int64_t size() const { return size_; }
  void swap(Appender& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(size_, other.size_);
  }

 private:
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int fd_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace

struct RecordFiles::Writer {
  RecordSettings settings;
  std::string run;
  std::function<void(const std::string&)> ended;

  std::mutex mutex;
  std::condition_variable bell;
  std::vector<Line> waiting;
  std::int64_t waiting_bytes = 0;
  bool stops = false;
  bool is_done = false;  // the thread has nothing more to write
  std::atomic<bool> is_over{false};
  std::atomic<std::int64_t> written{0};

  // of the thread
  Appender file;
  std::int64_t number = 0;
  std::int64_t begun_at = 0;  // how long the file was when its own lines began
  KeptLines kept;
  std::string buffer;

  [[nodiscard]] fs::path path_of(std::int64_t file_number) const {
    return fs::path(settings.folder) / fmt::format("{}-{:04}.jsonl", run, file_number);
  }
  [[nodiscard]] std::int64_t most_of_file() const { return std::max<std::int64_t>(settings.most_bytes / kFiles, 1); }

  /// The reason is told once, to whoever asked to be told.
  void end(const std::string& why) {
    if (is_over.exchange(true)) return;
    std::function<void(const std::string&)> tell;
    {
      const std::lock_guard lock(mutex);
      waiting.clear();
      tell = std::exchange(ended, {});
    }
    if (tell) tell(why);
  }

  int begin_file(Appender& next) {
    if (const int error = next.open(path_of(number + 1)); error != 0) return error;
    ++number;
    return next.write(file_line(run, number).text);
  }

  int flush() {
    const int error = file.write(buffer);
    written += static_cast<std::int64_t>(buffer.size());
    buffer.clear();
    return error;
  }

  /// The next file begins with all of this one that still holds.
  int rotate() {
    if (const int error = flush(); error != 0) return error;
    Appender next;
    KeptLines holds;
    if (const int error = begin_file(next); error != 0) return error;
    std::string text;
    for (const auto& part : kept.parts()) {
      if (const int error = file.read(part.span, text); error != 0) return error;
      Line line{.what = part.what, .key = part.key, .text = part.count ? with_count(text, *part.count) : text};
      holds.note(line, next.size() + static_cast<std::int64_t>(buffer.size()));
      buffer += line.text;
      if (buffer.size() < kPiece) continue;
      if (const int error = next.write(std::exchange(buffer, {})); error != 0) return error;
    }
    buffer += begun_line().text;
    if (const int error = next.write(std::exchange(buffer, {})); error != 0) return error;
    written += next.size();
    file.swap(next);
    kept = std::move(holds);
    begun_at = file.size();
    tidy();
    return 0;
  }

  /// Never this run's own last file.
  void tidy() const {
    auto files = recordings_in(settings.folder);
    std::int64_t all = 0;
    for (const auto& one : files) all += one.size;
    const auto room = settings.most_bytes - most_of_file();
    for (const auto& one : files) {
      if (all <= room || one.path == path_of(number)) return;
      std::error_code ignored;
      if (fs::remove(one.path, ignored)) all -= one.size;
    }
  }

  int write(const std::vector<Line>& lines) {
    for (const auto& line : lines) {
      kept.note(line, file.size() + static_cast<std::int64_t>(buffer.size()));
      buffer += line.text;
      const auto size = file.size() + static_cast<std::int64_t>(buffer.size());
      // One that begins with much still gets as much again.
      const bool is_full = kept.may_end() && size >= std::max(most_of_file(), 2 * begun_at);
      if (!is_full && buffer.size() < kPiece) continue;
      if (const int error = is_full ? rotate() : flush(); error != 0) return error;
    }
    return flush();
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      bell.wait(lock, [this] { return stops || !waiting.empty(); });
      if (waiting.empty()) break;
      const auto lines = std::exchange(waiting, {});
      waiting_bytes = 0;
      lock.unlock();
      const int error = is_over ? 0 : write(lines);
      if (error != 0) end(fmt::format("{}: {}", path_of(number).string(), system_words(error)));
      lock.lock();
    }
    is_done = true;
    bell.notify_all();
  }
};

Result<std::unique_ptr<RecordFiles>> RecordFiles::open(const RecordSettings& settings, const std::string& run,
                                                       std::function<void(const std::string& why)> ended) {
  std::error_code error;
  fs::create_directories(settings.folder, error);
  if (error) return fail(ErrorKind::Invalid, fmt::format("{}: {}", settings.folder, error.message()));
  auto writer = std::make_shared<Writer>();
  writer->settings = settings;
  writer->run = run;
  writer->ended = std::move(ended);
  if (const int failed = writer->begin_file(writer->file); failed != 0)
    return fail(ErrorKind::Invalid, fmt::format("{}: {}", writer->path_of(1).string(), system_words(failed)));
  writer->written = writer->file.size();
  writer->tidy();
  std::thread([writer] { writer->work(); }).detach();
  return std::unique_ptr<RecordFiles>(new RecordFiles(std::move(writer)));
}

RecordFiles::RecordFiles(std::shared_ptr<Writer> writer) : writer_(std::move(writer)) {}

RecordFiles::~RecordFiles() {
  std::unique_lock lock(writer_->mutex);
  writer_->ended = {};
  writer_->stops = true;
  writer_->bell.notify_all();
  (void)writer_->bell.wait_for(lock, kPatience, [this] { return writer_->is_done; });
}

void RecordFiles::put(Line line) {
  if (writer_->is_over) return;
  const auto size = static_cast<std::int64_t>(line.text.size());
  {
    const std::lock_guard lock(writer_->mutex);
    if (writer_->waiting_bytes + size <= kMostWaiting) {
      writer_->waiting_bytes += size;
      writer_->waiting.push_back(std::move(line));
      writer_->bell.notify_all();
      return;
    }
  }
  writer_->end("the disk is too slow: more than 128 MiB are waiting for it");
}

std::int64_t RecordFiles::bytes_written() const { return writer_->written; }

}  // namespace dhc::record
