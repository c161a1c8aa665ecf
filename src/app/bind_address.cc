#include "app/bind_address.h"

#include <charconv>

#include <fmt/format.h>

namespace dhc {

Result<BindAddress> parse_bind_address(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' is not an address to listen on: write IP:PORT, [IPv6]:PORT or :PORT", text));
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad();
  }
  BindAddress address;
  address.host = host == "localhost" ? "127.0.0.1" : std::string(host);
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (ec != std::errc() || end != digits.data() + digits.size()) return bad();
  return address;
}

bool is_loopback(const BindAddress& address) {
  // That the rest is an address is found out when it is listened on: a name is not looked up.
  return address.host == "::1" || address.host.starts_with("127.");
}

bool is_loopback_host(std::string_view host) {
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos && !host.ends_with(']')) {
    host = host.substr(0, colon);
  }
  if (host == "localhost" || host == "[::1]") return true;
  // A name may begin with 127. too.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace dhc
