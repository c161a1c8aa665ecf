#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"
#include "k8s-client/model/lease.h"
#include "k8s-client/model/object.h"
#include "reconcilers/shared/object_requests.h"
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

/// The traces in one page of a list. Ours is: a DeviceTaintRule with our label and our prefix; a node's taint
/// exactly as we make it, and its conditions that our field manager for them owns; a pod's condition of our type that
/// our field manager owns; a Job's annotation of our domain that our field manager wrote and that is not one of those
/// that people write. Malformed if the body is no list.
[[nodiscard]] Result<Found> find_traces(k8s::Kind kind, std::string_view api_version, std::string_view body);

/// The ConfigMap or Lease of ours, as read by `build_get`; it is left unless our label is on it, which each of our
/// writes sets.
[[nodiscard]] Result<Found> find_named(TraceKind kind, std::string_view body);

/// The objects of others' kinds that the state ConfigMap remembers, by its own JSON: what is over is none of them.
[[nodiscard]] std::vector<ObjectName> remembered_objects(std::string_view state_map);

/// The trace of such an object, which stands at that path with that UID.
[[nodiscard]] Trace trace_of_object(const ObjectName& object, std::string path, std::string uid);

/// Whether a controller runs, told by looks at its Lease over time. No other clock is trusted: whoever holds it is seen
/// to renew it, and a standby is seen to take it.
class LeaseLooks {
 public:
  /// What a look showed; none: there is no Lease.
  void add(std::optional<k8s::Lease> lease, MonoTime now);

  /// Who took or renewed the Lease between two looks, in words; for good.
  [[nodiscard]] const std::optional<std::string>& running() const { return running_; }

  /// From then on it is certain that no controller with an election runs, if no look until then shows a change. Not
  /// before the first look.
  [[nodiscard]] MonoTime certain_at() const { return certain_at_; }

  /// Who holds the Lease by the last look; empty: nobody.
  [[nodiscard]] std::string holder() const;

 private:
  bool has_looked_ = false;
  std::optional<k8s::Lease> last_;
  std::optional<std::string> running_;
  MonoTime certain_at_{};
};

}  // namespace dhc::uninstall
