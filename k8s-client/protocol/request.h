#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/now.h"

namespace dhc::k8s {

enum class Method : std::uint8_t { Get, Post, Put, Patch, Delete };
[[nodiscard]] std::string_view to_string(Method method);

struct Header {
  std::string name;
  std::string value;
  friend bool operator==(const Header&, const Header&) = default;
};

/// How long each part of a call may take.
struct Timeouts {
  Millis connect = Seconds(5);                ///< TCP and TLS together.
  Millis idle = Seconds(30);                  ///< Without a byte from the server.
  std::optional<Millis> total = Seconds(30);  ///< The whole call; none for watches.
  std::optional<MonoTime> end_by =
      {};  ///< A moment of `boot_now` after which nothing more is sent; none: `total` says all.
  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

/// One HTTP request as a value: what to ask, without credentials and without a server.
struct Request {
  Method method = Method::Get;
  std::string target;           ///< Path and query below the server's own prefix, percent-encoded, starts with `/`.
  std::vector<Header> headers;  ///< Accept, Content-Type; never Authorization.
  std::string body;
  Timeouts timeouts;
  /// What the answer says besides its status is not wanted: neither its length nor its encoding makes it unreadable.
  bool status_only = false;
  friend bool operator==(const Request&, const Request&) = default;
};

/// How the API server reads the body of a write. **Source:** Kubernetes' API concepts, "Patch".
inline constexpr std::string_view kJson = "application/json";
/// Kubernetes' own protobuf, which we only read. **Source:** Kubernetes' API concepts, "Protobuf encoding".
inline constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";
inline constexpr std::string_view kJsonPatch = "application/json-patch+json";
/// Server-side apply: JSON is YAML, and the server takes it under this name only.
inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

/// A GET that is answered in JSON.
[[nodiscard]] Request read_request(std::string target);

/// A request with a body of one of the types above, answered in JSON.
[[nodiscard]] Request write_request(Method method, std::string target, std::string_view content_type, std::string body);

/// One HTTP response, body included unless it was streamed.
struct Response {
  unsigned status = 0;
  std::vector<Header> headers;  ///< Names in lower case.
  std::string body;
};

/// The first header of that name (lower case), or nothing.
[[nodiscard]] std::optional<std::string_view> header(const Response& response, std::string_view name);

/// Percent-encodes one path segment or query value: all but unreserved characters (RFC 3986).
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace dhc::k8s
