#include "k8s-client/resolver.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <optional>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace dhc::k8s {
namespace {

using Addresses = Result<std::vector<std::string>>;

constexpr int kLookupsAtOnce = 16;

/// Lookups under way, abandoned ones included: a name server that never answers must not cost a thread a try.
std::atomic<int> lookups{0};

/// Shared by the waiting caller and the looking thread; whoever leaves last frees it.
struct PendingLookup {
  std::mutex mutex;
  std::condition_variable_any done;
  std::optional<Addresses> answer;
};

Addresses look_up_without_throwing(const Lookup& lookup, const std::string& host) {
  try {
    return lookup(host);
  } catch (const std::exception& e) {
    return fail(ErrorKind::Unavailable, fmt::format("cannot look up host {}: {}", host, e.what()));
  }
}

Status start(const std::shared_ptr<PendingLookup>& pending, const std::string& host, Lookup lookup) {
  if (lookups.fetch_add(1) >= kLookupsAtOnce) {
    lookups.fetch_sub(1);
    return fail(ErrorKind::Unavailable, fmt::format("cannot look up host {}: {} lookups hang already; check the name "
                                                    "server",
                                                    host, kLookupsAtOnce));
  }
  try {
    std::thread([pending, host, lookup = std::move(lookup)] {
      Addresses answer = look_up_without_throwing(lookup, host);
      lookups.fetch_sub(1);
      const std::lock_guard lock(pending->mutex);
      pending->answer = std::move(answer);
      pending->done.notify_all();
    }).detach();
  } catch (const std::system_error& e) {
    lookups.fetch_sub(1);
    return fail(ErrorKind::Unavailable, fmt::format("cannot start a thread to look up host {}: {}", host, e.what()));
  }
  return {};
}

}  // namespace

bool is_ip_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

Addresses look_up_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) {
    return fail(ErrorKind::Unavailable, fmt::format("cannot look up host {}: {}", host, ::gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<std::string> out;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
      continue;
    }
    if (std::ranges::find(out, text.data()) == out.end()) out.emplace_back(text.data());
  }
  if (out.empty()) return fail(ErrorKind::Unavailable, fmt::format("host {} has no address", host));
  return out;
}

Addresses resolve(const std::string& host, std::chrono::steady_clock::time_point deadline, std::stop_token stop,
                  Lookup lookup) {
  if (is_ip_address(host)) return std::vector<std::string>{host};
  const auto pending = std::make_shared<PendingLookup>();
  if (auto started = start(pending, host, std::move(lookup)); !started) return std::unexpected(started.error());
  std::unique_lock lock(pending->mutex);
  if (pending->done.wait_until(lock, stop, deadline, [&] { return pending->answer.has_value(); })) {
    return std::move(*pending->answer);
  }
  if (stop.stop_requested()) return fail(ErrorKind::Cancelled, "stopped while looking up " + host);
  return fail(ErrorKind::TimedOut, fmt::format("no answer from the name server about host {}", host));
}

}  // namespace dhc::k8s
