#include "k8s-client/protocol/status_body.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "base/json_read.h"
#include "k8s-client/model/proto_decoder.h"
#include "k8s-client/model/proto_envelope.h"
#include "k8s-client/model/proto_reading.h"
#include "k8s-client/protocol/retry_after.h"

namespace dhc::k8s {
namespace {

using proto::each_field;
using proto::Value;

constexpr std::size_t kMaxStatusBytes = 1024UL * 1024;

std::optional<Millis> wish_of(std::int64_t seconds) {
  if (seconds <= 0) return std::nullopt;
  return std::min<std::int64_t>(seconds, kMaxRetryAfter / Seconds(1)) * Millis(Seconds(1));
}

std::optional<Millis> seconds_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? wish_of(found->get<std::int64_t>()) : std::nullopt;
}

void read_json_details(const nlohmann::json& details, StatusBody& out) {
  out.retry_after = seconds_at(details, "retryAfterSeconds");
  for (const auto& cause : json_list(details, {"causes"})) {
    if (!cause.is_object()) continue;
    out.causes.push_back(
        {json_string(cause, {"reason"}), json_string(cause, {"message"}), json_string(cause, {"field"})});
  }
}

std::optional<StatusBody> read_json_status(std::string_view body) {
  const auto json = read_json<nlohmann::json>(body);
  if (!json.is_object() || json_string(json, {"kind"}) != "Status") return std::nullopt;
  StatusBody status{.code = 0,
                    .reason = json_string(json, {"reason"}),
                    .message = json_string(json, {"message"}),
                    .causes = {},
                    .retry_after = std::nullopt};
  if (const auto code = json.find("code"); code != json.end() && code->is_number_integer()) {
    status.code = code->get<std::int64_t>();
  }
  if (const auto details = json.find("details"); details != json.end() && details->is_object()) {
    read_json_details(*details, status);
  }
  return status;
}

// **Source:** meta/v1 generated.proto, StatusCause.
bool read_cause(const Value& value, Fault& fault, StatusCause& cause) {
  return each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 1) return proto::read_text(field, fault, cause.reason);
    if (tag == 2) return proto::read_text(field, fault, cause.message);
    if (tag == 3) return proto::read_text(field, fault, cause.field);
    return true;
  });
}

// **Source:** meta/v1 generated.proto, StatusDetails.
bool read_details(const Value& value, Fault& fault, StatusBody& out) {
  std::int64_t seconds = 0;
  const bool read = each_field(value, fault, [&](std::uint32_t tag, const Value& field) {
    if (tag == 4) return proto::read_item(field, fault, out.causes, read_cause);
    if (tag == 5) return proto::read_number(field, fault, seconds);
    return true;
  });
  out.retry_after = wish_of(seconds);
  return read;
}

// **Source:** meta/v1 generated.proto, Status.
std::optional<StatusBody> read_protobuf(std::string_view body) {
  Fault fault;
  proto::Envelope envelope;
  if (!proto::open_envelope(body, fault, envelope) || envelope.kind != "Status") return std::nullopt;
  StatusBody status;
  const bool read = each_field(envelope.message, fault, [&](std::uint32_t tag, const Value& field) {
    switch (tag) {
      case 3:
        return proto::read_text(field, fault, status.message);
      case 4:
        return proto::read_text(field, fault, status.reason);
      case 5:
        return read_details(field, fault, status);
      case 6:
        return proto::read_number(field, fault, status.code);
      default:
        return true;
    }
  });
  return read ? std::optional(std::move(status)) : std::nullopt;
}

}  // namespace

std::optional<StatusBody> read_status_body(std::string_view body) {
  if (body.size() > kMaxStatusBytes) return std::nullopt;
  return is_protobuf(body) ? read_protobuf(body) : read_json_status(body);
}

}  // namespace dhc::k8s
