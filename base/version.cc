#include "base/version.h"

namespace dhc {

std::string_view version() noexcept { return DHC_VERSION; }

}  // namespace dhc
