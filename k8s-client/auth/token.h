#pragma once
#include <string>
#include <string_view>

#include "base/error.h"

namespace dhc::k8s {

/// A bearer token as it may be sent: white space around it is cut off. Invalid if it is empty, longer than 64 KiB or
/// holds a byte that does not belong in a header; the message names `where` and the remedy, never the token.
[[nodiscard]] Result<std::string> clean_token(std::string_view text, std::string_view where);

}  // namespace dhc::k8s
