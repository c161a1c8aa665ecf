#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"
#include "k8s-client/model/object.h"
#include "reconcilers/uninstall/trace.h"

namespace dhc::uninstall {

/// What one answer of the API server holds.
struct Found {
  std::vector<Trace> traces;
  std::vector<std::string> left;  ///< Looks like ours and is not: one sentence each.
  std::string continue_token;     ///< Of the next page; empty: this was the last.
};

/// A kind whose objects can carry a trace of ours, wherever they are.
struct Place {
  k8s::Kind kind;
  std::string_view plural;
};
inline constexpr std::array<Place, 4> kPlaces = {{{k8s::Kind::Pod, "Pods"},
                                                  {k8s::Kind::Job, "Jobs"},
                                                  {k8s::Kind::DeviceTaintRule, "DeviceTaintRules"},
                                                  {k8s::Kind::Node, "Nodes"}}};

/// The traces in one page of a list. Ours is: a DeviceTaintRule with our label and our prefix; a node's taint with our
/// key; a pod's condition of our type that our field manager owns; a Job's annotation of our domain that our field
/// manager wrote and that is not one of those that people write. Malformed if the body is no list.
[[nodiscard]] Result<Found> find_traces(k8s::Kind kind, std::string_view api_version, std::string_view body);

/// The ConfigMap or Lease of ours, as read by `build_get`; it is left if its label says that somebody else manages it.
[[nodiscard]] Result<Found> find_named(TraceKind kind, std::string_view body);

/// Who holds the Lease and how long ago that was renewed, in words; nothing if it is free or has run out.
[[nodiscard]] std::optional<std::string> running_controller(std::string_view lease, WallTime now);

}  // namespace dhc::uninstall
