#pragma once
#include <functional>
#include <set>

#include "base/shared_text.h"

namespace dhc {

/// A set in which views are looked up as they are.
using TextSet = std::set<SharedText, std::less<>>;

}  // namespace dhc
