#include "cli/explain.h"

#include <doctest/doctest.h>

#include "domain/contract/reasons.h"

namespace dhc::test {

TEST_CASE("explain says what a reason means, how it is told and what to do") {
  const auto printed = cli::explain({.reasons = {"BlockedByBudget"}});
  CHECK(printed.code == 0);
  CHECK(printed.err.empty());
  CHECK(printed.out ==
        "BlockedByBudget (Warning Event)\n  A PodDisruptionBudget refuses.\n"
        "  To do: Bring the other pods of that budget back, or change the budget.\n");
}

TEST_CASE("explain without a word says every reason once") {
  const auto printed = cli::explain({});
  CHECK(printed.code == 0);
  for (const auto& info : all_reasons()) {
    CAPTURE(info.word);
    CHECK(("\n" + printed.out).contains("\n" + std::string(info.word) + " ("));
  }
}

TEST_CASE("explain names what a mistyped reason may mean, and still explains the others") {
  const auto printed = cli::explain({.reasons = {"BlockedByBugdet", "Paused", "Nonsense"}});
  CHECK(printed.code == 1);
  CHECK(printed.out.starts_with("Paused ("));
  CHECK(printed.err.contains("'BlockedByBugdet' is no reason of a verdict, did you mean 'BlockedByBudget'?"));
  CHECK(printed.err.contains("'Nonsense' is no reason of a verdict; 'explain' without a word lists them all"));
}

}  // namespace dhc::test
