#pragma once
#include <span>
#include <vector>

#include "domain/contract/verdict.h"

namespace dhc {

/// What came and went between two turns. A verdict whose message or next step changed is still the same verdict, so
/// that a number in a sentence makes no news.
struct VerdictChanges {
  std::vector<Verdict> begun;
  std::vector<Verdict> ended;
};

/// Both lists sorted by subject, device, reason, as Controller::verdicts() gives them.
[[nodiscard]] VerdictChanges changes_between(std::span<const Verdict> before, std::span<const Verdict> after);

}  // namespace dhc
