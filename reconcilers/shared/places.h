#pragma once
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reconcilers/shared/coming_pods.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// Looks for places that pods could go to: free, untainted devices that no signal calls bad, all on one node that
/// accepts the pods. A device that nobody holds is reported by nobody: Unknown does not make it bad. What other pods
/// will take is taken first. As of one turn; what is found is remembered, so it costs what the first search costs.
class Places {
 public:
  /// What pods that wait, and the replacements of pods that we evicted, will take is taken at once; with a namespace,
  /// of those that wait its own alone.
  Places(const PlanInput& input, const ComingPods& coming, const std::optional<std::string>& ns = {});

  /// The node on which these pods could all run once they have given back what they hold, or in words why none is
  /// known. With `suspect`, a driver or resource, it is none where the brake counts a bad device of it. What waits in
  /// other namespaces counts for `kOthersPatience` in all, and then no longer.
  [[nodiscard]] std::expected<std::string, std::string> find(std::span<const k8s::Pod* const> pods,
                                                             const std::string& suspect = {});

  /// These pods are evicted in this turn: they give back what they hold, and their replacements take a place, if one is
  /// known.
  void take(std::span<const k8s::Pod* const> pods);

  /// Why no place is known for this demand by any node alike; empty: one is.
  [[nodiscard]] std::string why_not(const Demand& demand);

  /// What is taken on nodes, in words that are equal if it is the same.
  [[nodiscard]] std::map<std::string, std::string> taken() const;

  /// What finds no place before something is given back, in such words.
  [[nodiscard]] std::string waiting() const;

  /// Whether pods wait that may keep a place from others.
  [[nodiscard]] bool has_waiting() const { return !waiting_in_.empty(); }

  /// Waiting pods for which a place is free, by UID: for `ComingPods::note_offered`.
  [[nodiscard]] const std::set<std::string>& offered() const { return offered_; }

  /// Pods that would have a place but for what waits in other namespaces, by UID: for `ComingPods::note_crowded`.
  [[nodiscard]] const std::set<std::string>& crowded() const { return crowded_; }

 private:
  struct Released {
    std::set<std::string> pods;  // UIDs
    std::set<DeviceKey> devices;
  };
  /// One search; what it has found out stays true but for the nodes on which a pod gives something back.
  struct Search {
    std::string next;             // nodes before this one do not fit, but for
    std::set<std::string> again;  // these, which are to be looked at again
    std::optional<std::string> why_none;
  };

  [[nodiscard]] std::expected<std::string, std::string> find_among_all(std::span<const k8s::Pod* const> pods,
                                                                       const std::string& suspect);
  [[nodiscard]] Places& without_others(const std::string& ns);
  using NodeEntry = std::map<std::string, k8s::Node, std::less<>>::const_iterator;
  [[nodiscard]] const Room::Nodes* candidates(const Demand& demand) const;
  [[nodiscard]] NodeEntry candidate(const Room::Nodes* among, NodeEntry from) const;
  [[nodiscard]] bool accepts(const k8s::Node& node, const Demand& demand) const;
  [[nodiscard]] bool offers(const k8s::Node& node, const Demand& demand) const;
  [[nodiscard]] bool fits(const k8s::Node& node, const Demand& demand, const Released& released,
                          const std::string& suspect, std::vector<DeviceKey>& picked);
  [[nodiscard]] bool has_resources(const k8s::Node& node, const Demand& demand, const Released& released);
  [[nodiscard]] bool pick(const std::string& node, const Demand& demand, const Released& released,
                          const std::string& suspect, std::vector<DeviceKey>& picked);
  [[nodiscard]] bool is_free(const DeviceKey& key, const Released& released) const;
  [[nodiscard]] bool is_bad(const DeviceKey& key) const;
  [[nodiscard]] bool has_bad(const std::string& node, const std::string& suspect);
  [[nodiscard]] std::int64_t free_on(const k8s::Node& node, const std::string& resource);
  [[nodiscard]] std::int64_t used_on(const std::string& node, const std::string& resource,
                                     const ResourceBook* book) const;
  [[nodiscard]] std::int64_t used_by(const k8s::Pod& pod, const std::string& resource) const;
  [[nodiscard]] Released released_by(std::span<const k8s::Pod* const> pods) const;
  [[nodiscard]] const k8s::Node* search(const Demand& demand, const std::string& suspect, std::string& why,
                                        std::vector<DeviceKey>& picked);
  [[nodiscard]] std::string why_none(const Demand& demand, const std::string& suspect);
  void give_back(const Released& released);
  [[nodiscard]] bool is_left_on(const k8s::Node& node, const Demand& demand, const Released& released,
                                const std::string& suspect);
  bool settle(const Demand& demand);
  void occupy(const k8s::Node& node, const Demand& demand, const std::vector<DeviceKey>& picked);

  const PlanInput& input_;
  const ComingPods& coming_;
  std::set<std::string> waiting_in_;                      // namespaces of the pods that wait
  std::map<std::string, std::unique_ptr<Places>> alone_;  // by namespace
  std::vector<std::vector<const k8s::Pod*>> evicted_;     // in this turn
  std::set<std::string> crowded_;
  Released gone_;                                                  // what is given back by pods that are on their way
  std::map<std::string, std::vector<const k8s::Pod*>> gone_on_;    // of these, by node, those nobody has asked to end
  std::map<std::string, std::vector<const k8s::Pod*>> ending_on_;  // whom somebody has asked to, by node
  std::set<std::string, std::less<>> given_back_on_;               // nodes
  std::map<std::pair<std::string, std::string>, std::int64_t> free_;   // (node, resource), before `taken_`
  std::map<std::pair<std::string, std::string>, std::int64_t> taken_;  // (node, resource)
  std::set<DeviceKey> taken_devices_;
  std::map<std::tuple<Demand, std::string>, Search, std::less<>> searches_;  // by demand and `suspect`
  std::map<Demand, std::int64_t> waiting_;                  // what finds no place before something is given back
  std::map<std::string, std::set<std::string>> bad_nodes_;  // driver or resource -> nodes with a bad device
  std::set<std::string> offered_;
};

}  // namespace dhc
