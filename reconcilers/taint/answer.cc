#include "reconcilers/taint/answer.h"

#include <optional>
#include <variant>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "k8s-client/model/decoder.h"

namespace dhc::taint {

namespace {

std::optional<std::string> altered(const ApplyRule& action, const k8s::DeviceTaintRule& stored) {
  if (stored.meta.name != action.name) return "its name is " + stored.meta.name;
  if (auto changed = changed_by_other(stored)) return changed;
  if (stored.taint.effect != action.effect) return "its effect is " + stored.taint.effect;
  return std::nullopt;
}

}  // namespace

StoredRule judge_stored(const ApplyRule& action, const k8s::DeviceTaintRule& stored) {
  const auto what = altered(action, stored);
  if (!what) return {.status = {}, .uid = stored.meta.uid};
  return {.status = fail(ErrorKind::Altered,
                         fmt::format("an admission webhook or policy changes DeviceTaintRules that we make ({}: {}); "
                                     "except those of the controller's ServiceAccount from it",
                                     action.name, *what)),
          .uid = stored.meta.uid};
}

StoredRule judge_answer(const ApplyRule& action, const Result<k8s::Response>& answer) {
  if (!answer) return {.status = std::unexpected(answer.error())};
  const auto object = k8s::Decoder(k8s::Kind::DeviceTaintRule, kKeptFields).decode_object(answer->body);
  const auto* stored = object ? std::get_if<k8s::DeviceTaintRule>(&*object) : nullptr;
  if (stored == nullptr) {
    return {.status = fail(ErrorKind::Unavailable, "the API server's answer to the DeviceTaintRule cannot be read: " +
                                                       (object ? "another kind" : object.error().why))};
  }
  return judge_stored(action, *stored);
}

}  // namespace dhc::taint
