#include "tests/support/core/audit_log.h"

#include <optional>

#include <fmt/format.h>

#include "base/json_field.h"

namespace dhc::test {

namespace {
using k8s::Method;
using nlohmann::json;

// Tests speak for the same accounts, to see what these may not do: they call themselves otherwise.
constexpr std::string_view kAgent = "device-health-controller/";
// Of these the log holds the bodies of writes.
constexpr std::string_view kOurs = "system:serviceaccount:device-health-system:";
// Who removes an installation with the command `uninstall`, which takes away what the controller never does: its own
// stories look at what it leaves.
constexpr std::string_view kUninstaller = "test-administrator";

/// **Source:** the verbs of k8s.io/apiserver, RequestInfo.
std::optional<Method> method_of(std::string_view verb) {
  if (verb == "create") return Method::Post;
  if (verb == "update") return Method::Put;
  if (verb == "patch") return Method::Patch;
  if (verb == "delete" || verb == "deletecollection") return Method::Delete;
  return std::nullopt;
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

}  // namespace

// Several policies and controllers share a log: which of them may lower a Job's limit, it does not say.
AuditLog::AuditLog() { conduct_.let_take_back(); }

void AuditLog::take(std::string_view line) {
  const auto event = json::parse(line, nullptr, false);
  if (!event.is_object()) {
    ++unread_;
    return;
  }
  if (!json_string(event, {"userAgent"}).starts_with(kAgent)) return;
  const auto user = json_string(event, {"user", "username"});
  auto& account = accounts_[user];
  if (json_string(event, {"stage"}) != "ResponseComplete") return;  // a watch that is open when the log ends
  ++account.requests;
  const auto method = method_of(json_string(event, {"verb"}));
  if (!method) return;
  ++account.writes;
  if (user == kUninstaller) return;
  const auto before = broken_.size();
  if (user.starts_with(kOurs)) {
    take_write(event, *method, account);
  } else {
    broken_.emplace_back("a write under an account whose writes the log does not hold: nobody can judge it");
  }
  for (auto text = broken_.begin() + static_cast<std::ptrdiff_t>(before); text != broken_.end(); ++text) {
    *text = fmt::format("{} {}: {}", json_string(event, {"requestReceivedTimestamp"}), user, *text);
  }
}

void AuditLog::take_write(const json& event, Method method, Account& account) {
  const auto* body = json_field(event, {"requestObject"});
  const auto* code = json_field(event, {"responseStatus", "code"});
  const AnsweredRequest write{.method = method,
                              .target = json_string(event, {"requestURI"}),
                              .body = body == nullptr ? json() : *body,
                              .status = code != nullptr && code->is_number_unsigned() ? code->get<unsigned>() : 0};
  if (body == nullptr && write.status >= 400) {
    ++account.refused;  // by authorization or flow control, before it was decoded
    return;
  }
  if (json_string(event, {"level"}) == "Metadata") {
    broken_.push_back(fmt::format("{} {}: the log does not hold its body", k8s::to_string(method), write.target));
    return;
  }
  conduct_.take(write);
  if (is_rehearsal(event)) {
    conduct_.eviction_ended(json_string(write.body, {"deleteOptions", "preconditions", "uid"}), false);
  }
  for (auto& text : conduct_.take_broken()) broken_.push_back(std::move(text));
}

}  // namespace dhc::test
