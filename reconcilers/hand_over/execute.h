#pragma once
#include <stop_token>

#include "base/error.h"
#include "k8s-client/client.h"
#include "reconcilers/hand_over/action.h"

namespace dhc::hand_over {

/// Sends one request once; it may be repeated.
[[nodiscard]] Status execute(const ApplyNodeConditions& action, const k8s::Client& client, std::stop_token stop);

/// Creates the object if nothing of its name is there, in at most five requests. Done as well if it stands there
/// already for this incident: an earlier answer was lost, or somebody is deleting it. Contested: another's object, or
/// one of ours for another incident, has the name; it is left as it is. Invalid: the kind is not served, or the object
/// is refused. Unread: nothing was sent. May be repeated.
[[nodiscard]] Status execute(const MakeObject& action, const k8s::Client& client, const std::stop_token& stop);

/// Deletes the object if it is ours and of that incident; what is none of that, or not there, counts as done. Three
/// requests. May be repeated.
[[nodiscard]] Status execute(const RemoveObject& action, const k8s::Client& client, const std::stop_token& stop);

}  // namespace dhc::hand_over
