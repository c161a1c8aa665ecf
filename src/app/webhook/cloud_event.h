#pragma once
#include <string>
#include <string_view>

#include "domain/incidents/news.h"

namespace dhc {

/// The `source` of the events where the configuration names none: our namespace's, or the program's.
[[nodiscard]] std::string webhook_source(std::string_view given, std::string_view own_namespace);

/// A CloudEvent in JSON, structured mode. **Source:** CloudEvents 1.0.2 and its JSON format.
[[nodiscard]] std::string cloud_event(const News& news, std::string_view source);

}  // namespace dhc
