#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "bench/fleet_year/contender.h"
#include "domain/contract/verdict.h"
#include "domain/policy/policy.h"

namespace dhc::year {

/// What the program does by default, enforced: taint, credit, evict.
[[nodiscard]] Policy default_policy();

/// The controller in a simulated cluster.
class Ours : public Contender {
 public:
  void reported(std::size_t /*device*/, bool /*bad*/) override {}

  /// What it says now.
  [[nodiscard]] virtual const std::vector<Verdict>& verdicts() const = 0;

  /// The server's clock is so far ahead of its own from now on, and it knows.
  virtual void set_clock_ahead(Millis ahead) = 0;
};

/// The unchanged controller: every watch through its bytes, every action through its requests, as if it led for ever.
/// Streams never fall silent here, so their word is dated ahead instead of coming every minute.
[[nodiscard]] std::unique_ptr<Ours> make_ours(sim::Cluster& cluster, const Policy& policy);

}  // namespace dhc::year
