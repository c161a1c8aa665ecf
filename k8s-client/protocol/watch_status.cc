#include "k8s-client/protocol/watch_status.h"

#include <algorithm>

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

WatchStatus merged(const WatchStatus& a, const WatchStatus& b) {
  WatchStatus both = a.state == WatchState::Watching ? b : a;
  both.synced = a.synced && b.synced;
  for (std::size_t i = 0; i < both.endings.size(); ++i) both.endings.at(i) = a.endings.at(i) + b.endings.at(i);
  both.relists = a.relists + b.relists;
  both.events = a.events + b.events;
  both.json_bytes = a.json_bytes + b.json_bytes;
  both.protobuf_bytes = a.protobuf_bytes + b.protobuf_bytes;
  both.bad_objects = a.bad_objects + b.bad_objects;
  both.went_back = a.went_back + b.went_back;
  both.behind = a.behind || b.behind;
  both.last_event_at = std::min(a.last_event_at, b.last_event_at);  // none is the least
  return both;
}

}  // namespace dhc::k8s
