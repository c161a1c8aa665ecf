#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "domain/policy/policy.h"

namespace dhc {

/// A DRA driver whose words for a bad device have been read in its source.
struct KnownDriver {
  std::string_view name;
  /// Its sentences beside Unhealthy, `#` standing for any number; none: it sends no message, or never says Unhealthy.
  std::span<const std::string_view> sentences;
  /// Keys of the taints by which it calls a device bad, where a release or all of them say it in no other way.
  std::span<const std::string_view> taints = {};
};

/// Every such driver. **Source:** tests/fixtures/vendors, each word with repository, file and commit; a test holds the
/// two to each other.
[[nodiscard]] std::span<const KnownDriver> known_drivers();

/// Messages that the driver may send with Unhealthy: each sentence, with every number that is likely.
[[nodiscard]] std::vector<std::string> likely_messages(const KnownDriver& driver);

/// What is doubtful about an expression, to be read after its name, and what to write instead.
struct PatternDoubt {
  std::string what;
  std::string remedy;
};

/// Why the expression may miss what the drivers that `match` names are known to say: it depends on upper and lower
/// case, or matches none of their sentences, or plugins alone are named, which send none. Nothing if the drivers are
/// not known.
[[nodiscard]] std::optional<PatternDoubt> doubt_about(const MessagePattern& pattern, const Match& match);

/// Why the policy may miss what a driver that it names says by taints alone: `deviceTaints` has none of them. Nothing
/// if the driver is named by a glob, or not known.
[[nodiscard]] std::optional<PatternDoubt> doubt_about_taints(const Match& match);

}  // namespace dhc
