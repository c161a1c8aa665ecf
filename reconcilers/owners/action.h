#pragma once
#include <optional>
#include <string>

#include "base/now.h"
#include "domain/cluster/touched.h"
#include "k8s-client/model/meta.h"
#include "reconcilers/shared/action_facts.h"

namespace dhc::owners {

/// Reads the metadata of one owner.
struct ReadOwner {
  std::string ns;  ///< Of the pod: an owner is in the same namespace, or in none.
  k8s::OwnerRef owner;
  MonoTime asked_at;  ///< What is found is as old as this, however late the answer comes.
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  /// Notes whose decisions rest on it, when it is sent and when it is answered.
  void touch(Touched& touched) const;
  friend bool operator==(const ReadOwner&, const ReadOwner&) = default;
};

}  // namespace dhc::owners
