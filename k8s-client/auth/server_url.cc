#include "k8s-client/auth/server_url.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include <fmt/format.h>

namespace dhc::k8s {

namespace {

std::unexpected<Error> refuse(std::string_view why) {
  return fail(ErrorKind::Invalid, fmt::format("server {}; write it as https://HOST:PORT", why));
}

bool host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool address_character(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

}  // namespace

Result<Endpoint> parse_server_url(std::string_view url) {
  if (std::ranges::any_of(url, [](char c) { return c <= ' ' || c > '~' || c == '\\'; })) {
    return refuse("has a space or another character that is not allowed in a URL");
  }
  Endpoint endpoint;
  if (url.starts_with("https://")) {
    url.remove_prefix(8);
  } else if (url.starts_with("http://")) {
    endpoint.tls = false;
    endpoint.port = 80;
    url.remove_prefix(7);
  } else {
    return refuse("does not begin with https://");
  }
  if (url.find_first_of("?#") != std::string_view::npos) return refuse("has a query or a fragment");
  std::string_view authority = url.substr(0, url.find('/'));
  std::string_view prefix = url.substr(authority.size());
  if (authority.contains('@')) return refuse("has a user name in it");
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  endpoint.path_prefix = prefix;

  std::string_view host;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("has an IPv6 address without its closing bracket");
    host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    if (!host.contains(':') || !std::ranges::all_of(host, address_character)) {
      return refuse("has brackets around something that is not an IPv6 address");
    }
    if (!authority.empty() && !authority.starts_with(':'))
      return refuse("has something between the address and the port");
  } else {
    host = authority.substr(0, authority.find(':'));
    authority.remove_prefix(host.size());
    if (std::ranges::count(authority, ':') > 1) return refuse("has an IPv6 address without brackets");
    if (!std::ranges::all_of(host, host_character)) return refuse("has a bad host name");
  }
  if (host.empty()) return refuse("has no host");
  endpoint.host = host;
  if (authority.size() > 1) {
    authority.remove_prefix(1);
    const auto [end, error] = std::from_chars(authority.data(), authority.data() + authority.size(), endpoint.port);
    if (error != std::errc{} || end != authority.data() + authority.size() || endpoint.port == 0) {
      return refuse("has a port that is not a number from 1 to 65535");
    }
  }
  return endpoint;
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace dhc::k8s
