#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "simulator/api/store.h"

namespace dhc::sim {

/// What each controller has to look at: what has changed since its last look, or rests on something that has, or is
/// waited for.
struct Restless {
  std::set<std::string> drivers;   ///< By node.
  std::set<std::string> kubelets;  ///< By node.
  std::set<Name> claimants;        ///< Pods that may lack a claim.
  std::set<Name> claims;
  std::set<Name> deployments;
  std::set<Name> replica_sets;
  std::set<Name> budgets;
  std::set<Name> rules;
  std::set<Name> ownerless_sets;  ///< ReplicaSets whose owner may be gone.
  std::set<Name> ownerless_pods;
};

/// Related objects, found without a look at all of them. It follows the store's changes.
class Index {
 public:
  /// Takes in what has been written. True: history was missed or the store was restored, so all of it was read anew.
  bool follow(const Store& store);

  [[nodiscard]] const std::set<Name>& pods_on(const std::string& node) const { return found(pods_on_, node); }
  /// The pods with that controller owner.
  [[nodiscard]] const std::set<Name>& pods_of(const std::string& uid) const { return found(pods_of_, uid); }
  /// The pods of the namespace with that label.
  [[nodiscard]] const std::set<Name>& pods_labelled(const std::string& ns, const std::string& label,
                                                    const std::string& value) const;
  /// The pods without a node.
  [[nodiscard]] const std::set<Name>& unbound() const { return found(pods_on_, {}); }
  [[nodiscard]] const std::set<Name>& slices_of(const std::string& node) const { return found(slices_of_, node); }
  /// The claims that hold `driver/pool/device`.
  [[nodiscard]] const std::set<Name>& claims_on(const std::string& device) const { return found(claims_on_, device); }
  /// How many pods that have not ended each node has.
  [[nodiscard]] int load_of(const std::string& node) const;
  /// True if an object of that UID is stored; Events and Leases, which own nothing, are left out.
  [[nodiscard]] bool lives(const std::string& uid) const { return uids_.contains(uid); }
  /// Changes with all that may make room for a pod, or take it.
  [[nodiscard]] std::uint64_t room() const { return room_; }

  Restless restless;

 private:
  using Groups = std::map<std::string, std::set<Name>>;
  const std::set<Name>& found(const Groups& groups, const std::string& key) const;
  void take(const Store& store, Res res, const Change& change);
  void place(Res res, const Name& name, const Json& object, bool there);
  void touch_pod(const Store& store, const Name& name, const Json& pod, bool there);
  void touch_budgets(const Store& store, const std::string& ns, const Json* pod);
  void touch_ownerless(Res res, const Name& name, const Json& object);
  void release_owned(const std::string& uid);

  Groups pods_on_;
  Groups pods_of_;
  Groups pods_labelled_;  // by namespace, label and value
  Groups slices_of_;
  Groups claims_on_;
  Groups sets_of_;  // ReplicaSets by their owner's UID
  std::map<std::string, int> load_;
  std::set<std::string> uids_;
  std::uint64_t room_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t server_ = 0;
  bool started_ = false;
  std::set<Name> none_;
};

}  // namespace dhc::sim
