#pragma once
#include <string>

#include "domain/policy/config.h"

namespace dhc {

/// `file:line:column: message; remedy`.
[[nodiscard]] std::string format_mistake(const ConfigMistake& mistake);

/// `file:line:column: warning: message; remedy`.
[[nodiscard]] std::string format_warning(const ConfigMistake& warning);

/// A selector as kubectl writes it: `pool=a,!spot,zone in (b,c)`.
[[nodiscard]] std::string selector_text(const LabelSelector& selector);

/// What a valid configuration does, for people: a line such as `3 policies, default limits: valid`, then each policy in
/// the order in which they are asked, with every default written out. Ends with a line break.
[[nodiscard]] std::string format_config(const Config& config);

}  // namespace dhc
