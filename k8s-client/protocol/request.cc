#include "k8s-client/protocol/request.h"

#include <utility>

namespace dhc::k8s {
namespace {

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

}  // namespace

std::string_view to_string(Method method) {
  switch (method) {
    case Method::Get:
      return "GET";
    case Method::Post:
      return "POST";
    case Method::Put:
      return "PUT";
    case Method::Patch:
      return "PATCH";
    case Method::Delete:
      return "DELETE";
  }
  return "";
}

Request read_request(std::string target) {
  Request request;
  request.target = std::move(target);
  request.headers = {{"Accept", std::string(kJson)}};
  return request;
}

Request write_request(Method method, std::string target, std::string_view content_type, std::string body) {
  Request request;
  request.method = method;
  request.target = std::move(target);
  request.headers = {{"Accept", std::string(kJson)}, {"Content-Type", std::string(content_type)}};
  request.body = std::move(body);
  return request;
}

std::optional<std::string_view> header(const Response& response, std::string_view name) {
  for (const Header& each : response.headers) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 0x0FU];
  }
  return out;
}

}  // namespace dhc::k8s
