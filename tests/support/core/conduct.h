#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "k8s-client/protocol/request.h"
#include "simulator/api/target.h"

namespace dhc::test {

/// One request of the controller as an API server answered it: the simulator, or a real one by its audit log.
struct AnsweredRequest {
  k8s::Method method = k8s::Method::Get;
  std::string target;
  nlohmann::json body;  ///< Null: none.
  unsigned status = 0;  ///< 0: no answer.
};

/// The invariants that a controller's requests alone can break, whatever the cluster: the same checker reads every
/// scenario's requests as they are sent and every real story's audit log.
class Conduct {
 public:
  /// Takes in the next request, in the order in which the server answered.
  void take(const AnsweredRequest& request);

  /// etcd was restored from a backup: who was evicted since may be there again.
  void etcd_restored();

  /// What became of an eviction whose answer may lie: it happened all the same, or was accepted and did nothing, so
  /// that to ask again is no second success.
  void eviction_ended(const std::string& uid, bool happened);

  /// From now on a Job's limit may be lowered: a policy says `takeBack`.
  void let_take_back() { may_take_back_ = true; }

  /// From now on the requests of release 0.1.0 are among them, which kept its state in a ConfigMap of another name.
  void let_earlier_release() { has_earlier_release_ = true; }

  /// What was broken since the last call: the invariant, the request and what is wrong with it.
  [[nodiscard]] std::vector<std::string> take_broken() { return std::exchange(broken_, {}); }
  [[nodiscard]] std::size_t writes() const { return writes_; }

 private:
  void say(std::string_view invariant, const AnsweredRequest& request, std::string_view what);
  void look_at_write(const sim::ResourcePath& path, const AnsweredRequest& request);
  void look_at_eviction(const AnsweredRequest& request);
  void look_at_rule(const sim::ResourcePath& path, const AnsweredRequest& request);
  void look_at_node(const AnsweredRequest& request);
  void look_at_node_condition(const AnsweredRequest& request);
  void look_at_condition(const AnsweredRequest& request);
  void look_at_job(const sim::ResourcePath& path, const AnsweredRequest& request);
  void look_at_state(const sim::ResourcePath& path, const AnsweredRequest& request);
  void look_at_lease(const AnsweredRequest& request);
  void look_at_object(const AnsweredRequest& request);
  void look_at_event(const AnsweredRequest& request);

  bool may_take_back_ = false;
  bool has_earlier_release_ = false;
  std::size_t writes_ = 0;
  std::set<std::string> objects_;                                       // paths of collections with an object of ours
  std::set<std::string> evicted_;                                       // UIDs
  std::set<std::string> rules_;                                         // names of those that we applied
  std::map<std::string, std::pair<std::string, std::int64_t>> limits_;  // of Jobs: UID and what we set last
  std::vector<std::string> broken_;
};

}  // namespace dhc::test
