#include "k8s-client/protocol/watch_status.h"

namespace dhc::k8s {

std::string_view to_string(WatchState state) {
  switch (state) {
    case WatchState::Syncing:
      return "Syncing";
    case WatchState::Watching:
      return "Watching";
    case WatchState::Resyncing:
      return "Resyncing";
    case WatchState::BackingOff:
      return "BackingOff";
    case WatchState::Forbidden:
      return "Forbidden";
    case WatchState::NotServed:
      return "NotServed";
    case WatchState::Stopped:
      return "Stopped";
  }
  return "Unknown";
}

}  // namespace dhc::k8s
