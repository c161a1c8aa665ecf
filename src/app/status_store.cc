#include "app/status_store.h"

#include <algorithm>
#include <utility>

#include "app/clock.h"

namespace dhc {

StatusStore::StatusStore(const std::vector<k8s::Kind>& kinds, Mode mode, bool has_election)
    : verdicts_(std::make_shared<const std::vector<Verdict>>()) {
  facts_.last_turn = mono_now();
  facts_.mode = mode;
  if (has_election) facts_.election = ElectionFact{};
  for (const auto kind : kinds) facts_.watches.push_back({.kind = kind, .problem = {}});
}

void StatusStore::turn_done(MonoTime now) {
  const std::lock_guard lock(mutex_);
  facts_.last_turn = now;
}

void StatusStore::show(std::shared_ptr<const std::vector<Verdict>> verdicts) {
  const std::lock_guard lock(mutex_);
  verdicts_ = std::move(verdicts);
  text_.reset();
}

void StatusStore::watch(const WatchFact& fact) {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(facts_.watches, fact.kind, &WatchFact::kind);
  if (at != facts_.watches.end()) *at = fact;
}

void StatusStore::election(const ElectionFact& fact) {
  const std::lock_guard lock(mutex_);
  facts_.election = fact;
}

void StatusStore::server_ahead(Millis ahead) {
  const std::lock_guard lock(mutex_);
  facts_.server_ahead = ahead;
}

void StatusStore::policy_loaded() {
  const std::lock_guard lock(mutex_);
  facts_.policy_loaded = true;
  facts_.policy_problem.clear();
}

void StatusStore::policy_in_force(std::shared_ptr<const Policy> policy) {
  const std::lock_guard lock(mutex_);
  facts_.policy = std::move(policy);
}

void StatusStore::policy_problem(std::string problem) {
  const std::lock_guard lock(mutex_);
  facts_.policy_problem = std::move(problem);
}

Facts StatusStore::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

std::shared_ptr<const std::vector<Verdict>> StatusStore::verdicts() const {
  const std::lock_guard lock(mutex_);
  return verdicts_;
}

std::shared_ptr<const std::string> StatusStore::verdicts_text() const {
  std::shared_ptr<const std::vector<Verdict>> shown;
  {
    const std::lock_guard lock(mutex_);
    if (auto text = text_.lock()) return text;
    shown = verdicts_;
  }
  // Made without the lock: whoever shows verdicts waits for nobody.
  auto text = std::make_shared<const std::string>(verdicts_list(*shown));
  const std::lock_guard lock(mutex_);
  if (shown == verdicts_) text_ = text;
  return text;
}

}  // namespace dhc
