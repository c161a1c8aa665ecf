#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/hand_over/cases.h"
#include "reconcilers/shared/hold_reasons.h"

namespace dhc::hand_over {

using Grounds = std::vector<Ground>;

/// Whether a condition of ours says that the node is bad.
[[nodiscard]] bool is_handed_over(const k8s::Condition& condition);

/// What holds a node back in one plan, whatever it is handed over by.
class Gates {
 public:
  explicit Gates(const PlanInput& input);

  /// Why the node is not newly handed over now. One device that may be a ground is enough. `deed` is what an enforcing
  /// policy would do.
  [[nodiscard]] std::optional<HoldReason> not_now(const k8s::Node& node, const Grounds& grounds,
                                                  std::string_view deed) const;
  /// Why what stands is not changed.
  [[nodiscard]] std::optional<HoldReason> not_changed(const Grounds& grounds) const;
  /// Why what stands does not end now; null: no policy asks for it any more.
  [[nodiscard]] std::optional<HoldReason> not_ended(const DevicePolicy* policy) const;
  /// What an earlier request of this key holds back.
  [[nodiscard]] std::optional<HoldReason> held_back(const std::string& key, const std::string& seen_version,
                                                    std::string_view asks = {}) const;
  /// The cap, counted in nodes that have devices of the same driver or resource; it is no question for a node that is
  /// handed over already.
  [[nodiscard]] std::optional<HoldReason> full(const k8s::Node& node, const DeviceKey& key) const;
  [[nodiscard]] std::optional<HoldReason> too_fast() const;

  /// This plan sends a request; `begins`: by which the node is handed over.
  void sends() { tokens_.take(1, input_.now.mono); }
  void begins(const std::string& node) { begun_.insert(node); }
  /// Nodes that are handed over, or may be.
  [[nodiscard]] std::size_t handed_over() const;

  [[nodiscard]] static HoldReason held(std::string why, std::optional<MonoTime> until);

 private:
  /// The nodes with devices of one driver or resource.
  struct Scope {
    std::set<std::string> nodes;
    std::int64_t out = 0;              // of them, those that count
    std::size_t begun = 0;             // `begun_` when that was counted
    std::optional<MonoTime> frees_at;  // when a hand-over that is still to be seen counts no more; none: no such
  };
  [[nodiscard]] std::optional<HoldReason> not_now(const k8s::Node& node, const Ground& ground,
                                                  std::string_view deed) const;
  [[nodiscard]] bool counts(const std::string& node) const;
  /// Until when the World may not show yet that the node was handed over; none: it shows what there is.
  [[nodiscard]] std::optional<MonoTime> to_be_seen_by(const std::string& node) const;
  [[nodiscard]] const Scope& scope_of(const DeviceKey& key) const;

  const PlanInput& input_;
  TokenBucket tokens_;                 // without those that this plan takes
  std::set<std::string> with_object_;  // nodes of which an object stands, or is to
  std::set<std::string> standing_;     // of these, those of which one may stand now
  std::set<std::string> begun_;        // nodes that this plan hands over
  mutable std::map<std::pair<DeviceKey::Source, std::string>, Scope> scopes_;
};

}  // namespace dhc::hand_over
