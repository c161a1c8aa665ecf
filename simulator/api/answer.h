#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/now.h"
#include "k8s-client/protocol/request.h"
#include "simulator/api/field.h"
#include "simulator/api/target.h"
#include "simulator/api/watch_stream.h"

namespace dhc::sim {

/// What the server says to one request.
struct Answer {
  unsigned status = 200;
  std::vector<k8s::Header> headers;  ///< Names in lower case; `content-type` included.
  std::string body;
  Millis delay{0};                       ///< How long the server takes; its effect on the store was at once.
  std::optional<std::size_t> cut_after;  ///< The connection breaks after this many bytes of the body.
  std::optional<WatchStream> watch;      ///< The body is this stream instead.
};

/// A JSON body.
[[nodiscard]] Answer answer_json(unsigned status, const Json& body);
[[nodiscard]] Answer answer_text(unsigned status, std::string body);

/// The details of a failure: which object, why.
struct Details {
  std::string name;
  std::string group;
  std::string kind;
  Json causes;  ///< Null: none.
};

/// A Status failure object. **Source:** recordings of 1.37.1.
[[nodiscard]] Json failure(unsigned code, std::string_view reason, std::string_view message,
                           const Details& details = {});
[[nodiscard]] Answer answer_failure(unsigned code, std::string_view reason, std::string_view message,
                                    const Details& details = {});

/// One entry of `details.causes`.
[[nodiscard]] Json cause(std::string_view reason, std::string_view message, std::string_view field_name = {});

[[nodiscard]] Answer not_found(Res res, const std::string& name);
/// 409: the resourceVersion in a write is not the stored one.
[[nodiscard]] Answer stale_version(Res res, const std::string& name);
/// 409: the UID precondition of a delete or eviction names another object.
[[nodiscard]] Answer uid_precondition_failed(Res res, const std::string& name, const std::string& wanted,
                                             const std::string& stored);
/// 409: the resourceVersion precondition of a delete is not the stored one.
[[nodiscard]] Answer version_precondition_failed(Res res, const std::string& name, const std::string& wanted,
                                                 const std::string& stored);
/// 422 with the given causes, each from `cause`.
[[nodiscard]] Answer invalid(Res res, const std::string& name, const Json& causes);

/// The same as a collected response.
[[nodiscard]] k8s::Response to_response(const Answer& answer);

}  // namespace dhc::sim
