#pragma once
#include <string_view>

#include "base/error.h"
#include "k8s-client/protocol/request.h"
#include "reconcilers/uninstall/trace.h"

namespace dhc::uninstall {

/// Reads one of the ConfigMaps or the Lease of ours in that namespace; Invalid for any other kind or a namespace that
/// does not fit in a path.
[[nodiscard]] Result<k8s::Request> build_get(TraceKind kind, std::string_view ns);

/// Removes one trace and nothing else, with its UID as a precondition. Conflict means another object or version now:
/// look again; NotFound: done. Invalid if a name does not fit in a path or the UID is missing.
/// **Source:** seen on 1.37.1: a JSON patch whose first operation replaces the version answers a stale one with 409.
[[nodiscard]] Result<k8s::Request> build_removal(const Trace& trace);

}  // namespace dhc::uninstall
