#include "app/policy_file.h"

#include <array>
#include <utility>

#include "k8s-client/auth/file.h"

namespace dhc {

namespace {
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr Millis kInterval{250};  // a pause must be in force within a second
}  // namespace

PolicyFile::PolicyFile(std::string path, PolicyDesk& desk)
    : path_(std::move(path)), desk_(desk), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void PolicyFile::look() {
  {
    const std::lock_guard lock(mutex_);
    looks_ = true;
  }
  bell_.notify_all();
}

void PolicyFile::watch(const std::stop_token& stop) {
  std::optional<std::string> before;
  while (!stop.stop_requested()) {
    auto text = k8s::read_file(path_, kMostBytes);
    if (!text) {
      before.reset();
      desk_.take(
          {.policy = std::unexpected(std::move(text.error())), .brake_release = {}, .cap_release = {}, .source = {}});
    } else if (before != *text) {
      before = *text;
      const std::array files = {ConfigFile{.name = path_, .text = std::move(*text)}};
      desk_.take({.policy = policy_of(parse_config(files)), .brake_release = {}, .cap_release = {}, .source = {}});
    }
    std::unique_lock lock(mutex_);
    (void)bell_.wait_for(lock, stop, kInterval, [this] { return looks_; });
    if (std::exchange(looks_, false)) before.reset();
  }
}

}  // namespace dhc
