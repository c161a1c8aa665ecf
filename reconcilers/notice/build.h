#pragma once
#include <string>
#include <string_view>

#include "base/error.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/notice/action.h"

namespace dhc::notice {

/// The reportingController of our Events.
inline constexpr std::string_view kReportingController = "device-health.io/controller";

/// Server-side apply of our condition and the notice, never forced, with the UID in `metadata.uid` as precondition;
/// what is left out of it is removed if it is ours. Invalid if a name does not fit in a path or the UID is empty.
/// **Source:** seen on 1.37.1: a wrong UID answers 422 with the field `metadata.uid`, the same apply twice writes
/// nothing, and an apply to the status writes annotations as well.
[[nodiscard]] Result<k8s::Request> build_condition(const ApplyCondition& action);

/// The create request of one Event. `reporting_instance` is our pod's name or host (at most 128 bytes are sent).
/// Invalid if the Event has no name or its subject's namespace does not fit in a path.
/// **Source:** events.k8s.io/v1: eventTime has exactly six digits, a note at most 1,024 bytes, Events of cluster-scoped
/// objects live in `default`; seen on 1.37.1.
[[nodiscard]] Result<k8s::Request> build_event(const EmitEvent& action, std::string_view reporting_instance);

}  // namespace dhc::notice
