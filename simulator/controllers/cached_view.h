#pragma once
#include <functional>
#include <map>
#include <string>

#include "simulator/api/store.h"

namespace dhc::sim {

/// One resource as a controller sees it through its own watch: the past, by a lag that scripts may change.
/// **Source:** a Job controller behind on Jobs kills a healthy pod, seen on 1.37.1 with a delayed watch.
class CachedView {
 public:
  explicit CachedView(Res res) : res_(res) {}

  /// Takes in what was written up to `lag` ago; `seen` gets each change. Returns when the next one is due.
  std::optional<MonoTime> advance(const Store& store, Millis lag, const std::function<void(const Change&)>& seen);

  [[nodiscard]] const Objects& objects() const { return objects_; }
  /// Those with that controller owner.
  [[nodiscard]] const Objects& owned_by(const std::string& uid) const;

 private:
  Res res_;
  Objects objects_;
  std::map<std::string, Objects> owned_;
  Objects none_;
  std::uint64_t at_ = 0;
};

}  // namespace dhc::sim
