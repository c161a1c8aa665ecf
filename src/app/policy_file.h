#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "app/policy_desk.h"

namespace dhc {

/// Reads `--config FILE` every 250 ms, on a thread of its own, and takes it to the desk when it has changed. By
/// content, because neither time stamps nor inotify survive every way in which a file is replaced.
class PolicyFile {
 public:
  PolicyFile(std::string path, PolicyDesk& desk);

  /// Reads it now, and takes it to the desk whatever it holds. Any thread.
  void look();

 private:
  void watch(const std::stop_token& stop);

  const std::string path_;
  PolicyDesk& desk_;
  std::mutex mutex_;
  std::condition_variable_any bell_;
  bool looks_ = false;   // under mutex_
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace dhc
