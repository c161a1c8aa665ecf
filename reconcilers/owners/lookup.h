#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "domain/cluster/owner_sight.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/owners/action.h"

namespace dhc::owners {

/// The requests of one read: which resource has the owner's kind, in the version that the reference names or any that
/// the server has, then the object's metadata. At most seven requests, none of which is repeated.
class Lookup {
 public:
  explicit Lookup(ReadOwner action);

  /// What to ask next; none: it is over.
  [[nodiscard]] std::optional<k8s::Request> next() const;

  /// The answer to that.
  void answered(const Result<k8s::Response>& answer);

  /// What was found, once it is over; `at` is left to whoever knows the time.
  [[nodiscard]] const OwnerSight& sight() const { return sight_; }
  /// How it ended: well for Found and Absent, else the error of the request that failed.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  enum class Step : std::uint8_t { Resources, Versions, Object, Over };
  void read_resources(const Result<k8s::Response>& answer);
  void read_versions(const Result<k8s::Response>& answer);
  void read_object(const Result<k8s::Response>& answer);
  void try_next_version();
  void ask_for_object(const std::string& resource, bool namespaced);
  void end(OwnerSight::State state, std::string why);
  void end_with(const Error& error, std::string rule);
  [[nodiscard]] std::string path_of(const std::string& version) const;

  ReadOwner action_;
  std::string group_;                  // empty: the core's
  std::vector<std::string> versions_;  // to be tried, the first is the one that is asked
  bool has_asked_versions_ = false;
  std::string resource_;
  Step step_ = Step::Resources;
  std::string target_;
  OwnerSight sight_;
  Status status_;
};

}  // namespace dhc::owners
