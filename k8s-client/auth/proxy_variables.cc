#include "k8s-client/auth/proxy_variables.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <string_view>

#include "k8s-client/auth/server_url.h"
#include "k8s-client/protocol/ascii.h"

namespace dhc::k8s {

namespace {

struct Address {
  std::array<unsigned char, 16> bytes{};
  unsigned bits = 0;  ///< 32, 128, or 0 if it is no address.
};

Address address_of(const std::string& text) {
  Address address;
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  }
  return address;
}

bool in_network(const Address& host, std::string_view network) {
  const std::size_t slash = network.find('/');
  const Address base = address_of(std::string(network.substr(0, slash)));
  if (base.bits == 0 || base.bits != host.bits) return false;
  unsigned length = base.bits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = network.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error != std::errc{} || end != digits.data() + digits.size() || length > base.bits) return false;
  }
  for (unsigned bit = 0; bit < length; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if (((host.bytes.at(bit / 8) ^ base.bytes.at(bit / 8)) & mask) != 0) return false;
  }
  return true;
}

/// One entry of NO_PROXY: `*`, an address, a network, or a name that stands for itself and what is below it.
bool exempts(std::string_view entry, const std::string& host, std::uint16_t port) {
  if (entry == "*") return true;
  const Address address = address_of(host);
  if (address.bits != 0 && in_network(address, entry)) return true;
  if (const std::size_t colon = entry.rfind(':'); colon != std::string_view::npos && entry.find(':') == colon) {
    if (entry.substr(colon + 1) != std::to_string(port)) return false;
    entry = entry.substr(0, colon);
    if (address.bits != 0 && in_network(address, entry)) return true;
  }
  if (entry.starts_with("*.")) entry.remove_prefix(1);
  const bool only_below = entry.starts_with('.');
  if (only_below) entry.remove_prefix(1);
  if (entry.empty()) return false;
  if (host == entry) return !only_below;
  return host.size() > entry.size() && host.ends_with(entry) && host[host.size() - entry.size() - 1] == '.';
}

}  // namespace

std::optional<std::string> proxy_variable_for(const Endpoint& endpoint, const ProxyVariables& variables) {
  const std::string& proxy = endpoint.tls ? variables.https_proxy : variables.http_proxy;
  if (proxy.empty() || is_loopback(endpoint.host)) return std::nullopt;
  const std::string host = to_lower_ascii(endpoint.host);
  const std::string exempt = to_lower_ascii(variables.no_proxy);
  for (std::size_t at = 0; at < exempt.size();) {
    const std::size_t end = std::min(exempt.find_first_of(", ", at), exempt.size());
    if (exempts(std::string_view(exempt).substr(at, end - at), host, endpoint.port)) return std::nullopt;
    at = end + 1;
  }
  return endpoint.tls ? "HTTPS_PROXY" : "HTTP_PROXY";
}

}  // namespace dhc::k8s
