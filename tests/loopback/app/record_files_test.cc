#include "app/record/record_files.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/record/lines.h"
#include "app/record/rerun.h"
#include "cli/record_reading.h"
#include "cli/replay.h"
#include "tests/support/shell/program.h"

using namespace dhc;

namespace {

namespace fs = std::filesystem;

/// A folder that goes with it.
struct RecordFolder : test::Folder {
  fs::path path = fs::path(test::Folder::path()) / "records";
  [[nodiscard]] std::vector<std::string> files() const { return *cli::recordings_of({path.string()}); }
};

std::string text_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

record::Line object_line(int number) {
  k8s::Node node;
  node.meta.name = fmt::format("node-{}", number % 50);
  node.meta.uid = node.meta.name;
  node.boot_id = std::to_string(number);
  std::vector<record::Line> lines;
  Message message(std::in_place_type<k8s::Delivery>, k8s::Upsert{node});
  record::put_message(message, 0, lines);
  return std::move(lines.front());
}

record::Line take(int number) { return record::take_line({.ms = number, .us = 0}); }

void write_story(record::RecordFiles& files, int length) {
  files.put(record::base_line({.mono_ms = 0, .wall_us = 0}));
  for (int i = 0; i < length; ++i) {
    files.put(object_line(i));
    files.put(take(i));
  }
}

struct Ended {
  std::mutex mutex;
  std::vector<std::string> why;
  [[nodiscard]] std::size_t times() {
    const std::lock_guard lock(mutex);
    return why.size();
  }
};

}  // namespace

TEST_CASE("A recording is cut into files that each begin with what holds, and stays within its bound") {
  const RecordFolder folder;
  constexpr std::int64_t kMost = 200'000;
  {
    const auto files = record::RecordFiles::open({.folder = folder.path.string(), .most_bytes = kMost}, "run",
                                                 [](const std::string&) {});
    REQUIRE(files);
    write_story(**files, 10'000);
  }
  const auto names = folder.files();
  CHECK(names.size() >= 4);
  std::int64_t all = 0;
  for (const auto& name : names) all += static_cast<std::int64_t>(fs::file_size(name));
  CHECK(all <= kMost);
  CHECK_FALSE(fs::exists(folder.path / "run-0001.jsonl"));
  record::Rerun rerun;
  std::vector<std::string> remarks;
  const auto read = cli::read_lines(
      names, [&](std::string_view line) { return rerun.feed(line); },
      [&](std::string text) { remarks.push_back(text); });
  CHECK_MESSAGE(read, (read ? "" : read.error().message));
  CHECK(remarks.empty());
  CHECK(rerun.report().runs == 1);
  CHECK(rerun.report().files == names.size());
  // All fifty nodes, whichever file one begins with.
  const auto last = text_in(names.back());
  for (int i = 0; i < 50; ++i) CHECK(last.find(fmt::format("\"node-{}\"", i)) != std::string::npos);
}

TEST_CASE("The oldest recordings go first, and never the one that is being written") {
  const RecordFolder folder;
  fs::create_directories(folder.path);
  for (const char* name : {"20200101T000000Z-a-0001.jsonl", "20210101T000000Z-b-0001.jsonl"})
    std::ofstream(folder.path / name) << record::file_line("of-before", 1).text << std::string(60'000, 'x');
  // What others have put there is theirs, whatever it is called and however old it is.
  std::ofstream(folder.path / "notes.txt") << std::string(600'000, 'x');
  std::ofstream(folder.path / "20190101T000000Z-a-0001.jsonl") << std::string(60'000, 'x');
  const auto files = record::RecordFiles::open({.folder = folder.path.string(), .most_bytes = 100'000}, "30000101",
                                               [](const std::string&) {});
  REQUIRE(files);
  CHECK_FALSE(fs::exists(folder.path / "20200101T000000Z-a-0001.jsonl"));
  CHECK(fs::exists(folder.path / "20210101T000000Z-b-0001.jsonl"));
  CHECK(fs::exists(folder.path / "30000101-0001.jsonl"));
  CHECK(fs::exists(folder.path / "notes.txt"));
  CHECK(fs::exists(folder.path / "20190101T000000Z-a-0001.jsonl"));
}

TEST_CASE("A disk that takes no more ends the recording once, and whoever puts lines goes on") {
  const RecordFolder folder;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  Ended ended;
  const auto files = record::RecordFiles::open({.folder = folder.path.string()}, "run", [&](const std::string& why) {
    const std::lock_guard lock(ended.mutex);
    ended.why.push_back(why);
  });
  REQUIRE(files);
  const rlimit small{.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  write_story(**files, 500);
  while (ended.times() == 0) ::usleep(1000);
  write_story(**files, 500);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  (void)std::signal(SIGXFSZ, old_handler);
  CHECK(ended.times() == 1);
  CHECK(ended.why.front().find("run-0001.jsonl: File too large") != std::string::npos);
  CHECK(fs::file_size(folder.path / "run-0001.jsonl") <= 10'000);
}

TEST_CASE("A folder that cannot be made is an error that names it") {
  const auto files = record::RecordFiles::open({.folder = "/proc/none/here"}, "run", [](const std::string&) {});
  REQUIRE_FALSE(files);
  CHECK(files.error().kind == ErrorKind::Invalid);
  CHECK(files.error().message.starts_with("/proc/none/here: "));
}

TEST_CASE("A torn last line ends its file and is said, and any other fault is named by file and line") {
  const RecordFolder folder;
  {
    const auto files = record::RecordFiles::open({.folder = folder.path.string()}, "run", [](const std::string&) {});
    REQUIRE(files);
    write_story(**files, 3);
  }
  const auto path = (folder.path / "run-0001.jsonl").string();
  std::ofstream(path, std::ios::app) << R"({"Node":{"me)";
  auto replayed = cli::replay({.paths = {folder.path.string()}, .files = {}});
  CHECK(replayed.code == 0);
  CHECK(replayed.out.find("note: " + path + ":9: the last line is torn") != std::string::npos);
  std::ofstream(path, std::ios::app) << "\n";
  replayed = cli::replay({.paths = {path}, .files = {}});
  CHECK(replayed.code == 1);
  CHECK(replayed.err.starts_with("error: " + path + ":9: not JSON: "));
  CHECK(cli::replay({.paths = {"/nowhere"}, .files = {}}).err == "error: /nowhere: no such file or folder\n");
}

TEST_CASE("An audit log is rehearsed with a configuration, and never without one") {
  const RecordFolder folder;
  const auto log = folder.write(
      "audit.log",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":200},"responseObject":{"kind":"Node","metadata":{"name":"n","uid":"u"}},"stageTimestamp":"2026-11-20T12:00:00.000000Z"})"
      "\n");
  const auto policy = folder.write("policy.yaml",
                                   "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\n"
                                   "metadata: {name: p}\nspec: {mode: observe, match: {}}\n");
  const auto played = cli::replay({.paths = {log}, .is_audit = true, .files = {policy}});
  CHECK(played.code == 0);
  CHECK_MESSAGE(played.out.find("note: 1 of 1 events of the audit log were used") != std::string::npos, played.out,
                played.err);
  const auto bare = cli::replay({.paths = {log}, .is_audit = true, .files = {}});
  CHECK(bare.code == 2);
  CHECK(bare.err.find("--audit needs a configuration: give -f FILE") != std::string::npos);
  const auto metadata_only = folder.write(
      "metadata.log",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-20T12:00:00.000000Z"})"
      "\n");
  const auto unused = cli::replay({.paths = {metadata_only}, .is_audit = true, .files = {policy}});
  CHECK(unused.code == 1);
  CHECK(unused.out.empty());
  CHECK(unused.err.find("Nothing can be said: the audit policy must log") != std::string::npos);
  const auto wrong = cli::replay({.paths = {policy}, .is_audit = true, .files = {policy}});
  CHECK(wrong.err.find("policy.yaml:1: not JSON") != std::string::npos);
}

TEST_CASE("The audit logs of several servers, and rotated ones in any order, are played as one") {
  const RecordFolder folder;
  const auto node = [](int minute, int version) {
    return fmt::format(
        R"({{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","objectRef":{{"resource":"nodes","name":"n"}},"responseStatus":{{"code":200}},"responseObject":{{"kind":"Node","metadata":{{"name":"n","uid":"u","resourceVersion":"{}"}}}},"stageTimestamp":"2026-11-20T12:{:02}:00.000000Z"}})"
        "\n",
        version, minute);
  };
  const auto first = folder.write("a.log", node(0, 1) + node(20, 5));
  const auto other = folder.write("b.log", node(2, 2) + "\n" + node(10, 4) + node(40, 8));
  const auto rotated = folder.write("a-1.log", node(25, 6) + node(30, 7) + R"({"kind":)");
  const auto empty = folder.write("c.log", "");
  const auto policy = folder.write("policy.yaml",
                                   "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\n"
                                   "metadata: {name: p}\nspec: {mode: observe, match: {}}\n");
  const auto played = cli::replay({.paths = {rotated, first, empty, other}, .is_audit = true, .files = {policy}});
  CHECK_MESSAGE(played.code == 0, played.err);
  CHECK(played.out.starts_with("2026-11-20T12:00:00Z to 2026-11-20T12:40:00Z"));
  CHECK_MESSAGE(played.out.find("note: 7 of 7 events of the audit log were used") != std::string::npos, played.out);
  CHECK(played.out.find("known as new or newer") == std::string::npos);
  CHECK(played.out.find("more than a minute older") == std::string::npos);
  CHECK(played.out.find("a-1.log:3: the last line is torn") != std::string::npos);
  // A file's own order is kept: a clock that was set back is said.
  const auto set_back = folder.write("d.log", node(50, 9) + node(45, 10));
  const auto late = cli::replay({.paths = {first, set_back}, .is_audit = true, .files = {policy}});
  CHECK_MESSAGE(late.out.find("note: 1 events are more than a minute older") != std::string::npos, late.out);
  const auto wrong = cli::replay({.paths = {first, policy}, .is_audit = true, .files = {policy}});
  CHECK(wrong.err.find("policy.yaml:1: not JSON") != std::string::npos);
  const auto none = cli::replay({.paths = {first, "/nowhere"}, .is_audit = true, .files = {policy}});
  CHECK(none.err == "error: /nowhere: cannot be opened\n");
}
