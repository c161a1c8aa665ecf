#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/health_report.h"
#include "domain/contract/verdict.h"

namespace dhc {

/// What the threads of the shell show to the admin server, and nothing else: no decision reads it. Thread-safe.
class StatusStore {
 public:
  /// `kinds` are those that must be listed before we are ready; `mode` is the most that is done. Where there is an
  /// election we do not lead until it says so.
  explicit StatusStore(const std::vector<k8s::Kind>& kinds, Mode mode = Mode::Observe, bool has_election = false);

  void turn_done(MonoTime now);
  void show(std::shared_ptr<const std::vector<Verdict>> verdicts);
  void watch(const WatchFact& fact);
  void election(const ElectionFact& fact);
  void server_ahead(Millis ahead);
  void policy_loaded();
  void policy_in_force(std::shared_ptr<const Policy> policy);
  void policy_problem(std::string problem);

  [[nodiscard]] Facts facts() const;
  [[nodiscard]] std::shared_ptr<const std::vector<Verdict>> verdicts() const;
  /// Of the verdicts that were shown last, as `verdicts_list` has it: made once for all who hold it meanwhile.
  [[nodiscard]] std::shared_ptr<const std::string> verdicts_text() const;

 private:
  mutable std::mutex mutex_;
  Facts facts_;
  std::shared_ptr<const std::vector<Verdict>> verdicts_;
  mutable std::weak_ptr<const std::string> text_;  // of them, while somebody holds it
};

}  // namespace dhc
