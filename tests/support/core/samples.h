#pragma once
#include <string>
#include <vector>

#include "k8s-client/model/object.h"

namespace dhc::test {

/// Every kind that can be read.
[[nodiscard]] std::vector<k8s::Kind> every_kind();

/// An object of the kind in which every field that we use is there, and no other but `kind`.
[[nodiscard]] std::string full_sample(k8s::Kind kind);

/// Such an object with another name and UID.
[[nodiscard]] std::string full_sample(k8s::Kind kind, const std::string& name, const std::string& uid);

/// A list page of these items.
[[nodiscard]] std::string list_of(const std::vector<std::string>& items);

}  // namespace dhc::test
