#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/message.h"
#include "base/now.h"
#include "domain/policy/policy.h"
#include "k8s-client/model/meta.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc::bench {

/// CPU time of this process: on a shared machine the wall clock shows the others' work. A turn waits for nothing, so on
/// an idle one both are equal.
[[nodiscard]] double cpu_millis();

/// So long after the controller began.
[[nodiscard]] Now at(Millis since);

/// Metadata of an object whose UID and version follow from its name.
[[nodiscard]] k8s::Meta meta_of(std::string name, std::string ns = {});

/// The first list of every kind, as its watch delivers it; `fill` adds the objects.
[[nodiscard]] std::vector<Message> first_lists(const std::function<void(k8s::Snapshot&)>& fill);

/// Limits that hold nothing back: no budget, cap or brake.
[[nodiscard]] Limits no_limits();

}  // namespace dhc::bench
