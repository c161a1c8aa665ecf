#pragma once
#include <string>
#include <thread>

#include "app/policy_desk.h"

namespace dhc {

/// Reads `--config FILE` every second, on a thread of its own, and takes it to the desk when it has changed. By
/// content, because neither time stamps nor inotify survive every way in which a file is replaced.
class PolicyFile {
 public:
  PolicyFile(std::string path, PolicyDesk& desk);

 private:
  void watch(const std::stop_token& stop);

  const std::string path_;
  PolicyDesk& desk_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace dhc
