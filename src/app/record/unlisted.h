#pragma once
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "app/message.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc::record {

/// Kinds that a recording has no list of: whoever wrote it did not watch them yet.
class Unlisted {
 public:
  void note(const Message& message) {
    const auto* delivery = std::get_if<k8s::Delivery>(&message);
    const auto* list = delivery == nullptr ? nullptr : std::get_if<k8s::Snapshot>(delivery);
    if (list != nullptr) listed_.insert(list->kind);
  }

  /// As if the server did not serve them: for a controller that watches them, and would wait for ever.
  [[nodiscard]] std::vector<Message> take() {
    std::vector<Message> all;
    for (const auto kind : k8s::kAllKinds) {
      if (kind == k8s::Kind::ConfigMap || !listed_.insert(kind).second) continue;
      k8s::Snapshot none;
      none.kind = kind;
      none.served = false;
      all.emplace_back(std::in_place_type<k8s::Delivery>, std::move(none));
    }
    return all;
  }

 private:
  std::set<k8s::Kind> listed_;
};

}  // namespace dhc::record
