#include "app/verdict_json.h"

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc {

nlohmann::ordered_json verdict_json(const Verdict& verdict) {
  const auto& subject = verdict.subject;
  nlohmann::ordered_json json = {
      {"subject", {{"kind", subject.kind}, {"namespace", subject.ns}, {"name", subject.name}, {"uid", subject.uid}}},
      {"device", verdict.device},
      {"containers", verdict.containers},
      {"policy", verdict.policy},
      {"mode", nullptr},
      {"gate", nullptr},
      {"reason", to_string(verdict.reason)},
      {"message", verdict.message},
      {"since", format_rfc3339(verdict.since)},
      {"nextStepAt", nullptr}};
  if (!verdict.mode.empty()) json["mode"] = verdict.mode;
  if (!verdict.gate.empty()) json["gate"] = verdict.gate;
  if (verdict.next_at) json["nextStepAt"] = format_rfc3339(*verdict.next_at);
  return json;
}

}  // namespace dhc
