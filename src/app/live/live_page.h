#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "app/admin_server.h"
#include "app/live/live_feed.h"
#include "app/status_store.h"

namespace dhc {

/// The live page and /verdicts alone, of a controller that runs in no Application: the demo's.
class LivePage {
 public:
  /// Serves on a free port of this machine's loopback, in a mode that enforces. Unavailable: there is none.
  [[nodiscard]] static Result<std::unique_ptr<LivePage>> start();

  /// Such as `127.0.0.1:41234`; the page is at `http://ADDRESS/`.
  [[nodiscard]] const std::string& address() const { return server_->address(); }

  /// What the controller shows now, and the time by its clock. One thread.
  void show(Overview overview, std::span<const Verdict> verdicts, const Now& now);

 private:
  LivePage();
  void show();

  StatusStore status_store_;
  std::mutex mutex_;
  Overview overview_;  // for who comes next
  WallTime now_;
  LiveFeed feed_;
  std::unique_ptr<AdminServer> server_;
};

}  // namespace dhc
