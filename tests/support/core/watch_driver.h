#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/now.h"
#include "k8s-client/protocol/watch_machine.h"

namespace dhc::test {

/// Drives a WatchMachine through virtual time: what a watcher's thread would do, one call a step.
class WatchDriver {
 public:
  explicit WatchDriver(k8s::Kind kind, double chance_of_all = 0.5);

  /// Waits as the machine says until it asks for something; the request's target, or empty if it has stopped. Adds up
  /// the time waited in `waited`. The check before each stream is answered with `server_version`, if there is one.
  std::string request();

  void close();
  void fail(ErrorKind kind, std::optional<Millis> retry_after = std::nullopt);
  bool event(k8s::WatchEvent event);
  bool added(const std::string& name, const std::string& version);
  bool deleted(const std::string& name, const std::string& version);
  bool bookmark(const std::string& version, bool end = false);
  bool error(int code);
  bool bad(const std::string& name, const std::string& uid);
  void page(std::vector<std::string> names, const std::string& version, const std::string& continue_token = {});
  void pass(Millis time) { now.mono += time; }

  /// From nothing to Watching at `version` with one object, `node-a`, by WatchList.
  void sync(const std::string& version = "100");
  /// The same by pages, after a 422.
  void sync_by_pages(const std::string& version = "100");

  /// What was delivered since the last call, one word each: `Snapshot(a,b)`, `NotServed`, `+a`, `-a`, `?a`; without
  /// what the watch says of itself, which is added to `told`.
  std::vector<std::string> delivered();

  Now now{.mono = MonoTime(Seconds(5000)), .wall = {}};
  double chance;
  Millis waited{0};
  k8s::WatchMachine machine;
  std::vector<k8s::Delivery> out;
  std::vector<k8s::Told> told;
  std::string server_version = "1000000";  ///< Newer than anything that tests say.

 private:
  k8s::Kind kind_;
};

/// A delivery as one word; empty for Told.
[[nodiscard]] std::string word_of(const k8s::Delivery& delivery);

}  // namespace dhc::test
