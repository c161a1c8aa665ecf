#pragma once
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "cli/connection.h"
#include "cli/plugin/options.h"
#include "cli/plugin/sight.h"
#include "cli/printed.h"

namespace dhc::cli {

/// The exit code where no controller has written a status.
inline constexpr int kNoStatus = 3;

/// What a command prints that needs the status, and ends with `kNoStatus` if there is none.
[[nodiscard]] inline Printed without_status(const Error& error) {
  auto printed = failure(error.message);
  if (error.kind == ErrorKind::NotFound) printed.code = kNoStatus;
  return printed;
}

/// The connection that the flags name.
[[nodiscard]] Result<Connection> connect_to(const ClusterFlags& flags);

/// Reads the status of the controller in one namespace, and who leads. NotFound: no controller has written one there;
/// Forbidden: the message says which role to bind.
[[nodiscard]] Result<Sight> read_status(const k8s::Client& client, const std::string& ns, const std::stop_token& stop);

/// Follows it: `show` is called with each change, and about once a second with the time alone, until stopped or until
/// `show` says that it is enough. The error of the first read.
[[nodiscard]] Status follow_status(const std::shared_ptr<const k8s::Client>& client, const std::string& ns,
                                   const std::function<bool(const Sight&)>& show, const std::stop_token& stop);

}  // namespace dhc::cli
