#include "tests/support/shell/program.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/clock.h"

namespace dhc::test {

namespace {
std::string binary() {
  const char* given = std::getenv("DHC_BINARY");
  return given == nullptr ? "build/dev/device-health-controller" : given;
}

std::string contents(int file) {
  std::string text;
  std::array<char, 4096> piece{};
  for (off_t at = 0;;) {
    const auto got = ::pread(file, piece.data(), piece.size(), at);
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

int memory_file(std::string_view text = {}) {
  const int file = ::memfd_create("dhc-test", MFD_CLOEXEC);
  if (file < 0) throw std::runtime_error("memfd_create");
  if (!text.empty() && ::write(file, text.data(), text.size()) < 0) throw std::runtime_error("write");
  ::lseek(file, 0, SEEK_SET);
  return file;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}
}  // namespace

Program::Program(std::vector<std::string> arguments, std::string_view input, const Environment& environment)
    : out_(memory_file()), err_(memory_file()) {
  std::string path = binary();
  arguments.insert(arguments.begin(), path);
  const char* search = std::getenv("PATH");
  std::vector<std::string> variables = {std::string("PATH=") + (search == nullptr ? "" : search)};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const int in = memory_file(input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out_, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
  auto argv = pointers(arguments);
  auto envp = pointers(variables);
  const int failed = ::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(in);
  if (failed != 0) throw std::runtime_error("cannot start " + path);
  handle_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Program::~Program() {
  if (code_ < 0) {
    ::kill(pid_, SIGKILL);
    (void)reap(Seconds(10));
  }
  for (const int file : {out_, err_, handle_}) ::close(file);
}

bool Program::reap(Millis within) {
  if (code_ >= 0) return true;
  pollfd end{.fd = handle_, .events = POLLIN, .revents = 0};
  if (::poll(&end, 1, static_cast<int>(within.count())) <= 0) return false;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

int Program::ended(Millis within) { return reap(within) ? code_ : -1; }

std::string Program::out() const { return contents(out_); }
std::string Program::err() const { return contents(err_); }

void Program::signal(int number) const { ::kill(pid_, number); }

bool Program::await(const std::function<bool()>& condition, Millis within) {
  const MonoTime deadline = mono_now() + within;
  while (!condition()) {
    // The wait for its end is the pause between two looks.
    if (reap(Millis(10))) return condition();
    if (mono_now() >= deadline) return false;
  }
  return true;
}

bool Program::says(std::string_view text, Millis within) {
  return await([&] { return err().find(text) != std::string::npos; }, within);
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dhc-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, std::string_view text) const {
  const auto path = path_ + "/" + name;
  // By renaming, as editors and Kubernetes do: a reader never sees half of it.
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
  return path;
}

}  // namespace dhc::test
