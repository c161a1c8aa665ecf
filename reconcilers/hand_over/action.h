#pragma once
#include <optional>
#include <string>
#include <vector>

#include "k8s-client/model/meta.h"
#include "reconcilers/shared/action_facts.h"

namespace dhc::hand_over {

/// Server-side apply of all our conditions of one node, which has them from then on and no others of ours; of another
/// node under the same name nothing is changed.
struct ApplyNodeConditions {
  std::string node;
  std::string uid;
  std::string seen_version;  ///< The node's as the World shows it. No precondition: kubelets write all the time.
  std::vector<k8s::Condition> conditions;  ///< By type.
  bool hands_over = false;                 ///< One of them says anew that the node is bad.
  std::string policy;                      ///< Whose condition it is; empty: it is gone.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const ApplyNodeConditions&, const ApplyNodeConditions&) = default;
};

}  // namespace dhc::hand_over
