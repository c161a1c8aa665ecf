// Judges what a kube-apiserver's audit log says of the controller.
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json_field.h"
#include "tests/support/core/conduct.h"

namespace {

using dhc::json_field;
using dhc::json_string;
using dhc::k8s::Method;
using nlohmann::json;

// Tests speak for the account too, to see what it may not do: they call themselves otherwise.
constexpr std::string_view kAgent = "device-health-controller/";
constexpr std::string_view kUser = "system:serviceaccount:device-health-system:device-health-controller";

/// **Source:** the verbs of k8s.io/apiserver, RequestInfo.
std::optional<Method> method_of(std::string_view verb) {
  if (verb == "create") return Method::Post;
  if (verb == "update") return Method::Put;
  if (verb == "patch") return Method::Patch;
  if (verb == "delete" || verb == "deletecollection") return Method::Delete;
  return std::nullopt;
}

std::optional<dhc::test::AnsweredRequest> write_of(const json& event) {
  const auto method = method_of(json_string(event, {"verb"}));
  const bool is_ours =
      json_string(event, {"user", "username"}) == kUser && json_string(event, {"userAgent"}).starts_with(kAgent);
  if (!method || !is_ours || json_string(event, {"stage"}) != "ResponseComplete") return std::nullopt;
  const auto* body = json_field(event, {"requestObject"});
  const auto* code = json_field(event, {"responseStatus", "code"});
  return dhc::test::AnsweredRequest{
      .method = *method,
      .target = json_string(event, {"requestURI"}),
      .body = body == nullptr ? json() : *body,
      .status = code != nullptr && code->is_number_unsigned() ? code->get<unsigned>() : 0};
}

/// Whether a webhook has made a dry run of the request: its answer is 201, and nothing has happened.
/// **Source:** k8s.io/apiserver, the audit annotation of each patch that a mutating webhook asked for.
bool is_rehearsal(const json& event) {
  constexpr std::string_view kPatch = "patch.webhook.admission.k8s.io/";
  const auto* annotations = json_field(event, {"annotations"});
  if (annotations == nullptr || !annotations->is_object()) return false;
  for (const auto& [name, value] : annotations->items()) {
    if (name.starts_with(kPatch) && value.is_string() &&
        value.get_ref<const std::string&>().find("/deleteOptions/dryRun") != std::string::npos)
      return true;
  }
  return false;
}

int check(const char* path) {
  std::ifstream log(path);
  if (!log) {
    std::cerr << path << ": cannot be read\n";
    return 2;
  }
  dhc::test::Conduct conduct;
  // Several policies and controllers share the log: which of them may lower a Job's limit, it does not say.
  conduct.let_take_back();
  std::size_t unread = 0;
  std::size_t broken = 0;
  for (std::string line; std::getline(log, line);) {
    const auto event = json::parse(line, nullptr, false);
    if (!event.is_object()) {
      ++unread;  // cut off when the API server was killed
      continue;
    }
    const auto write = write_of(event);
    if (!write) continue;
    conduct.take(*write);
    if (is_rehearsal(event)) {
      conduct.eviction_ended(json_string(write->body, {"deleteOptions", "preconditions", "uid"}), false);
    }
    for (const auto& text : conduct.take_broken()) {
      ++broken;
      std::cerr << json_string(event, {"requestReceivedTimestamp"}) << " " << text << "\n";
    }
  }
  std::cout << conduct.writes() << " writes, " << broken << " break an invariant";
  if (unread > 0) std::cout << "; " << unread << " lines cannot be read";
  std::cout << "\n";
  return broken == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: audit-check LOG\n";
    return 2;
  }
  try {
    return check(argv[1]);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 2;
  }
}
