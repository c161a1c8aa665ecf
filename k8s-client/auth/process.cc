#include "k8s-client/auth/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace dhc::k8s {

namespace {

constexpr std::size_t kMostOutput = std::size_t{1} << 20;
constexpr int kPollMillis = 20;  // how late a stop or the program's end is seen at most

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> all;
  const auto replaced = [&](std::string_view entry) {
    return std::ranges::any_of(
        command.env, [&](const auto& own) { return entry.substr(0, entry.find('=')) == std::string_view(own.first); });
  };
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!replaced(*entry)) all.emplace_back(*entry);
  }
  for (const auto& [name, value] : command.env) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// posix_spawn's settings: /dev/null, our pipe, our stderr and nothing else is open; its own process group, so that it
/// can be killed with its children; no signal blocked or ignored.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    ::posix_spawnattr_init(&attributes);
    ::sigset_t none;
    ::sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  ::posix_spawn_file_actions_t files;
  ::posix_spawnattr_t attributes;
};

/// A child that is always waited for.
class Child {
 public:
  explicit Child(::pid_t pid) : pid_(pid) {}
  ~Child() { kill_and_wait(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The wait status once it has ended.
  std::optional<int> ended() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_;
  }
  void kill_and_wait() {
    // Its children may outlive it and hold the pipe: the whole group goes.
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (!status_ && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    if (!status_) status_ = status;
  }

 private:
  ::pid_t pid_;
  std::optional<int> status_;
};

/// Reads what is there. False when the other end is closed.
bool drain(int input, std::string& output) {
  std::array<char, 16384> piece;
  while (output.size() <= kMostOutput) {
    const ::ssize_t count = ::read(input, piece.data(), piece.size());
    if (count > 0) {
      output.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return true;
    }
  }
  return true;
}

/// Waits for the program's end; its output is what it wrote until then.
Result<std::string> await(Child& child, int input, const Command& command, Millis timeout,
                          const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string output;
  bool open = true;
  while (true) {
    const auto status = child.ended();
    open = open && drain(input, output);
    if (output.size() > kMostOutput) {
      return fail(ErrorKind::Invalid, fmt::format("{}: printed more than {} bytes", command.program, kMostOutput));
    }
    if (status) {
      if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return output;
      const std::string how = WIFEXITED(*status) ? fmt::format("ended with exit code {}", WEXITSTATUS(*status))
                                                 : fmt::format("was ended by signal {}", WTERMSIG(*status));
      return fail(ErrorKind::Invalid, fmt::format("{}: {}; what it wrote on stderr says why", command.program, how));
    }
    if (stop.stop_requested()) return fail(ErrorKind::Cancelled, fmt::format("{}: stopped", command.program));
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(ErrorKind::TimedOut, fmt::format("{}: no answer within {} ms", command.program, timeout.count()));
    }
    ::pollfd waited{open ? input : -1, POLLIN, 0};
    ::poll(&waited, 1, kPollMillis);
  }
}

}  // namespace

Result<std::string> run_program(const Command& command, Millis timeout, std::stop_token stop) {
  if (stop.stop_requested()) return fail(ErrorKind::Cancelled, fmt::format("{}: stopped", command.program));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{}: no pipe: {}", command.program, std::generic_category().message(errno)));
  }
  const auto close_ends = [](std::array<int, 2>* both) {
    for (const int end : *both) {
      if (end >= 0) ::close(end);
    }
  };
  const std::unique_ptr<std::array<int, 2>, decltype(close_ends)> closing(&ends, close_ends);
  // The child's end must block: it is an ordinary stdout.
  ::fcntl(ends[1], F_SETFL, 0);

  std::vector<std::string> args = command.args;
  args.insert(args.begin(), command.program);
  std::vector<std::string> env = environment_of(command);
  const SpawnSettings settings(ends[1]);
  ::pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, command.program.c_str(), &settings.files, &settings.attributes,
                                   pointers(args).data(), pointers(env).data());
  if (error != 0) {
    return fail(error == ENOENT ? ErrorKind::NotFound : ErrorKind::Invalid,
                fmt::format("{}: {}", command.program, std::generic_category().message(error)));
  }
  Child child(pid);
  ::close(std::exchange(ends[1], -1));
  return await(child, ends[0], command, timeout, stop);
}

}  // namespace dhc::k8s
