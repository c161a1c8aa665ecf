#include "simulator/api/answer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dhc::sim {

Answer answer_json(unsigned status, const Json& body) {
  Answer answer;
  answer.status = status;
  answer.headers = {{"content-type", "application/json"}, {"cache-control", "no-cache, private"}};
  answer.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return answer;
}

Answer answer_text(unsigned status, std::string body) {
  Answer answer;
  answer.status = status;
  answer.headers = {{"content-type", "text/plain; charset=utf-8"}};
  answer.body = std::move(body);
  return answer;
}

Json failure(unsigned code, std::string_view reason, std::string_view message, const Details& details) {
  Json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
                 {"status", "Failure"}, {"message", message}, {"reason", reason},
                 {"code", code}};
  Json extra = Json::object();
  if (!details.name.empty()) extra["name"] = details.name;
  if (!details.group.empty()) extra["group"] = details.group;
  if (!details.kind.empty()) extra["kind"] = details.kind;
  if (details.causes.is_array()) extra["causes"] = details.causes;
  if (!extra.empty()) status["details"] = std::move(extra);
  return status;
}

Answer answer_failure(unsigned code, std::string_view reason, std::string_view message, const Details& details) {
  return answer_json(code, failure(code, reason, message, details));
}

Json cause(std::string_view reason, std::string_view message, std::string_view field_name) {
  Json out = {{"reason", reason}, {"message", message}};
  if (!field_name.empty()) out["field"] = field_name;
  return out;
}

namespace {

Details about(Res res, const std::string& name) {
  const auto& type = type_of(res);
  return {name, std::string(type.group), std::string(type.resource), Json()};
}

std::string qualified(Res res) {
  const auto& type = type_of(res);
  return type.group.empty() ? std::string(type.resource) : fmt::format("{}.{}", type.resource, type.group);
}

}  // namespace

Answer not_found(Res res, const std::string& name) {
  return answer_failure(404, "NotFound", fmt::format("{} \"{}\" not found", qualified(res), name), about(res, name));
}

Answer stale_version(Res res, const std::string& name) {
  return answer_failure(409, "Conflict",
                        fmt::format("Operation cannot be fulfilled on {} \"{}\": the object has been modified; please "
                                    "apply your changes to the latest version and try again",
                                    qualified(res), name),
                        about(res, name));
}

Answer uid_precondition_failed(Res res, const std::string& name, const std::string& wanted, const std::string& stored) {
  const auto kind = std::string(type_of(res).kind);
  auto details = about(res, name);
  details.kind = kind;
  return answer_failure(
      409, "Conflict",
      fmt::format("Operation cannot be fulfilled on {} \"{}\": the UID in the precondition ({}) does not match the UID "
                  "in record ({}). The object might have been deleted and then recreated",
                  kind, name, wanted, stored),
      details);
}

Answer version_precondition_failed(Res res, const std::string& name, const std::string& wanted,
                                   const std::string& stored) {
  const auto kind = std::string(type_of(res).kind);
  auto details = about(res, name);
  details.kind = kind;
  return answer_failure(409, "Conflict",
                        fmt::format("Operation cannot be fulfilled on {} \"{}\": the ResourceVersion in the "
                                    "precondition ({}) does not match the ResourceVersion in record ({}). The object "
                                    "might have been modified",
                                    kind, name, wanted, stored),
                        details);
}

Answer invalid(Res res, const std::string& name, const Json& causes) {
  const auto& type = type_of(res);
  std::string all;
  for (const auto& one : causes) {
    all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", one.value("field", ""), one.value("message", ""));
  }
  if (causes.size() > 1) all = "[" + all + "]";
  const auto kind = type.group.empty() ? std::string(type.kind) : fmt::format("{}.{}", type.kind, type.group);
  auto details = about(res, name);
  details.kind = std::string(type.kind);
  details.causes = causes;
  return answer_failure(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", kind, name, all), details);
}

k8s::Response to_response(const Answer& answer) { return {answer.status, answer.headers, answer.body}; }

}  // namespace dhc::sim
