#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "domain/policy/config_documents.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestUrl = 2048;
constexpr std::string_view kUrlRemedy = "write https://HOST[:PORT][/PATH], or http:// where nothing is secret";

bool is_url_character(char c) {
  return c > 0x20 && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\\' && c != '#';
}

bool is_host(std::string_view host, bool is_address) {
  constexpr std::size_t kLongestHost = 253;
  const auto fits = [&](char c) {
    const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (is_address) return is_hex || c == ':' || c == '.';
    return is_hex || (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '-' || c == '.';
  };
  return !host.empty() && host.size() <= kLongestHost && std::ranges::all_of(host, fits);
}

std::optional<std::uint16_t> read_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != decltype(error){} || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

/// Host and port, `[::1]:8080` too. The mistake does not repeat the text, nor do those below: a user pastes tokens.
std::expected<WebhookUrl, std::string_view> read_authority(std::string_view text, WebhookUrl url) {
  const bool is_address = text.starts_with('[');
  std::string_view host = text;
  std::string_view port;
  if (is_address) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return std::unexpected("has no ] after its address");
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
    if (port.find(':', 1) != std::string_view::npos)
      return std::unexpected("has an IPv6 address that does not stand in brackets");
  }
  if (!is_host(host, is_address)) return std::unexpected("has a host that is none");
  if (!port.empty()) {
    const auto number = port.starts_with(':') ? read_port(port.substr(1)) : std::nullopt;
    if (!number) return std::unexpected("has a port that is none");
    url.port = *number;
  }
  url.host = std::string(host);
  return url;
}

std::expected<WebhookUrl, std::string_view> parse_url(std::string_view text) {
  if (text.size() > kLongestUrl) return std::unexpected("is longer than 2048 characters");
  if (!std::ranges::all_of(text, is_url_character))
    return std::unexpected("holds a blank, a quote, a fragment or characters that belong percent-encoded");
  WebhookUrl url;
  if (const auto scheme = text.find("://"); scheme != std::string_view::npos && scheme < text.find_first_of("/?")) {
    const auto word = text.substr(0, scheme);
    if (word != "https" && word != "http") return std::unexpected("has a scheme that is neither https nor http");
    url.tls = word == "https";
    text.remove_prefix(scheme + 3);
  }
  url.port = url.tls ? 443 : 80;
  const auto end = std::min(text.find_first_of("/?"), text.size());
  if (text.substr(0, end).find('@') != std::string_view::npos)
    return std::unexpected("names a user: events are signed, not logged in with");
  url.target = std::string(text.substr(end));
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return read_authority(text.substr(0, end), std::move(url));
}

void read_file_name(const YamlNode& node, std::string_view path, std::string& name, MistakeList& mistakes) {
  auto text = read_text(node, path, mistakes);
  if (!text) return;
  if (!text->starts_with('/') || text->find('\0') != std::string::npos) {
    mistakes.add(node.place, fmt::format("{} is {}, which is no absolute path", path, shown(*text)),
                 "write where the Secret is mounted, such as /etc/device-health/webhook/secret");
  }
  name = *std::move(text);
}

void read_source(const YamlNode& node, std::string& source, MistakeList& mistakes) {
  constexpr std::size_t kLongest = 200;
  auto text = read_text(node, "spec.webhook.source", mistakes);
  if (!text) return;
  if (text->empty() || text->size() > kLongest || !std::ranges::all_of(*text, is_url_character)) {
    mistakes.add(node.place, fmt::format("spec.webhook.source is {}, which is no URI reference", shown(*text)),
                 "write what names this cluster, such as /clusters/east-1");
  }
  source = *std::move(text);
}

}  // namespace

std::optional<WebhookRules> read_webhook(const YamlNode& node, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 5> kKeys = {"url", "secretFile", "caFile", "perMinute", "source"};
  constexpr std::int64_t kMostRequests = 600;
  WebhookRules rules;
  if (!check_map(node, "spec.webhook", kKeys, mistakes)) return std::nullopt;
  if (const YamlNode* given = node.find("url")) {
    if (const auto text = read_text(*given, "spec.webhook.url", mistakes)) {
      auto url = parse_url(*text);
      if (!url) mistakes.add(given->place, fmt::format("spec.webhook.url {}", url.error()), std::string(kUrlRemedy));
      if (url) rules.url = *std::move(url);
    }
  } else {
    mistakes.add(node.place, "spec.webhook has no url", std::string(kUrlRemedy));
  }
  if (const YamlNode* given = node.find("secretFile")) {
    read_file_name(*given, "spec.webhook.secretFile", rules.secret_file, mistakes);
  } else {
    mistakes.add(node.place, "spec.webhook has no secretFile: anybody could tell the receiver anything",
                 "add secretFile: /etc/device-health/webhook/secret, a mounted Secret with at least 16 bytes");
  }
  if (const YamlNode* given = node.find("caFile"))
    read_file_name(*given, "spec.webhook.caFile", rules.ca_file, mistakes);
  if (const YamlNode* given = node.find("perMinute")) {
    set(rules.per_minute, read_number(*given, "spec.webhook.perMinute", 1, kMostRequests, mistakes));
  }
  if (const YamlNode* given = node.find("source")) read_source(*given, rules.source, mistakes);
  return rules;
}

}  // namespace dhc
