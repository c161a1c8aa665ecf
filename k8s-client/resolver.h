#pragma once
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"

namespace dhc::k8s {

/// Whether `text` is an IPv4 or IPv6 address (no brackets, no zone).
[[nodiscard]] bool is_ip_address(const std::string& text);

/// Turns a host into IP addresses as text, blocking; errors are Unavailable.
using Lookup = std::function<Result<std::vector<std::string>>(const std::string& host)>;

/// The system's resolver (getaddrinfo).
[[nodiscard]] Result<std::vector<std::string>> look_up_host(const std::string& host);

/// The addresses of `host` in the order to try them; an IP address is its own answer. Gives up at the deadline
/// (TimedOut) or the stop (Cancelled) at once, although a lookup cannot be interrupted: it goes on alone on a detached
/// thread that owns its result. At most 16 lookups run in a process; one more is Unavailable.
[[nodiscard]] Result<std::vector<std::string>> resolve(const std::string& host,
                                                       std::chrono::steady_clock::time_point deadline,
                                                       std::stop_token stop, Lookup lookup = look_up_host);

}  // namespace dhc::k8s
