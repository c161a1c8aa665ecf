#pragma once
#include <string>

#include "base/error.h"
#include "k8s-client/model/object.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/taint/action.h"

namespace dhc::taint {

/// What became of a rule that was sent.
struct StoredRule {
  Status status;
  std::string uid = {};  ///< As the server has stored it; empty: not known.
};

/// Judges what the server says that it has stored. Altered if that is not the rule as it was sent: its label, its
/// device, its taint, or what it says of its effect. Unavailable if the answer cannot be read: it may have happened.
/// **Source:** mutating admission runs before an object is stored, and the answer shows it as it is stored.
[[nodiscard]] StoredRule judge_answer(const ApplyRule& action, const Result<k8s::Response>& answer);
[[nodiscard]] StoredRule judge_stored(const ApplyRule& action, const k8s::DeviceTaintRule& stored);

}  // namespace dhc::taint
