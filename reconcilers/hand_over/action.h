#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-client/model/meta.h"
#include "reconcilers/shared/action_facts.h"
#include "reconcilers/shared/object_requests.h"

namespace dhc::hand_over {

/// Server-side apply of all our conditions of one node, which has them from then on and no others of ours; of another
/// node under the same name nothing is changed.
struct ApplyNodeConditions {
  std::string node;
  std::string uid;
  std::string seen_version;  ///< The node's as the World shows it. No precondition: kubelets write all the time.
  std::vector<k8s::Condition> conditions;  ///< By type.
  std::string asks;                        ///< What it changes on the node; the same for two that change the same.
  bool hands_over = false;                 ///< One of them says anew that the node is bad.
  std::string policy;                      ///< Whose condition it is; empty: it is gone.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const ApplyNodeConditions&, const ApplyNodeConditions&) = default;
};

/// The version of an object that is to be made, and of one that was, for the request tracker: a deletion need not wait
/// until a World shows what was made.
inline constexpr std::string_view kSeenNoted = "noted";
inline constexpr std::string_view kSeenMade = "made";

/// Creates it, unless an object of that name is there.
struct MakeObject {
  ObjectName object;
  std::string text;  ///< The whole of it, as JSON.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const MakeObject&, const MakeObject&) = default;
};

/// Deletes it, if what has that name is ours and of that incident.
struct RemoveObject {
  ObjectName object;
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  friend bool operator==(const RemoveObject&, const RemoveObject&) = default;
};

}  // namespace dhc::hand_over
