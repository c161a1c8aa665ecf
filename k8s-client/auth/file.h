#pragma once
#include <cstddef>
#include <string>

#include "base/error.h"

namespace dhc::k8s {

/// The bytes of a file, opened by its path each time, because Kubernetes swaps symbolic links on rotation. NotFound: no
/// such file. Invalid: no permission, a folder, more than `most` bytes; the message names the path.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t most = std::size_t{1} << 20);

}  // namespace dhc::k8s
