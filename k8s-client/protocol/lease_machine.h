#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/now.h"
#include "k8s-client/model/lease.h"
#include "k8s-client/protocol/delivery.h"
#include "k8s-client/protocol/lease_requests.h"

namespace dhc::k8s {

/// The times of an election. **Source:** client-go's leaderelection: 15, 10 and 2 s.
struct LeaseTimes {
  Millis duration = Seconds(15);        ///< How long others wait after they saw us renew.
  Millis renew_deadline = Seconds(10);  ///< How long after a renewal was sent we still begin anything.
  Millis retry = Seconds(2);            ///< Between two renewals, and after a failure.
  Millis margin = Seconds(1);           ///< Before others may begin, all that we have begun is over.
};

/// How long we may act on a Lease that we hold.
struct LeaseTerm {
  MonoTime begin_until;  ///< From here on nothing is begun.
  MonoTime end_by;       ///< By then every call must be over.
  friend bool operator==(const LeaseTerm&, const LeaseTerm&) = default;
};

/// Send this, give the answer to `answered`.
struct LeaseCall {
  Request request;
};
/// Nothing to do until then, or until something is observed.
struct LeaseWait {
  MonoTime until;
};
/// After `release`: there is nothing (more) of ours to give back.
struct LeaseOver {};

using LeaseStep = std::variant<LeaseCall, LeaseWait, LeaseOver>;

/// One candidate of an election as a value: told what was answered and observed, and the time, it says what to do next
/// and whether it leads. Other clocks are never trusted: a holder's time is over when its record has not changed for
/// the Lease's duration since we saw it. Every write names the version that was seen, so of several candidates one
/// wins. The watch is only a hint: what it says while we hold the Lease is looked up, and elsewhere a wrong hint ends
/// as a 409.
class LeaseMachine {
 public:
  /// `identity` must be another one in each process.
  LeaseMachine(LeaseSubject subject, std::string identity, LeaseTimes times = {});

  /// What to do now. Not while a call is under way.
  [[nodiscard]] LeaseStep next(const Now& now);

  /// The answer to the last LeaseCall. `chance` in [0,1) spreads those that failed together.
  void answered(const Result<Response>& answer, const Now& now, double chance);

  /// Something that a watch of the Lease delivered.
  void observed(const Delivery& delivery, const Now& now);

  /// From now on give the Lease back: ask `next` until LeaseOver.
  void release();

  /// Whether what we would act on can no longer be believed. While our own calls are answered, a leader then gives the
  /// Lease back, at most once in 10 minutes, and for 45 s leaves it to somebody who sees.
  void blind(bool is_blind) { is_blind_ = is_blind; }

  /// Whether we have given the Lease back and leave it to others at this time.
  [[nodiscard]] bool yields(MonoTime now) const { return yields_until_ && now < *yields_until_; }

  /// Whether we lead at this time, and for how long.
  [[nodiscard]] std::optional<LeaseTerm> term(MonoTime now) const;

  /// Whether for 60 s neither we have led nor has any holder's record been seen to change: nobody leads, and it will
  /// not mend itself soon, or we cannot see it.
  [[nodiscard]] bool is_leaderless(MonoTime now) const;

  /// Who holds the Lease as far as we know; empty: nobody.
  [[nodiscard]] std::string holder() const;
  [[nodiscard]] const std::string& identity() const { return identity_; }

  /// Why the last call failed, naming the verb; none while all is well. That another was faster is no failure.
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

 private:
  enum class Ask : std::uint8_t { Nothing, Read, Create, Hold, Release };

  [[nodiscard]] LeaseStep call(Ask ask, const Now& now);
  [[nodiscard]] LeaseStep release_step(const Now& now);
  [[nodiscard]] Request hold_request(const Now& now) const;
  [[nodiscard]] bool is_ours() const { return known_ && known_->holder == identity_; }
  void answered_read(const Result<Lease>& answer, const Now& now);
  void answered_write(Ask ask, const Result<Lease>& answer, const Now& now);
  void failed(Ask ask, const Error& error, const Now& now, double chance);
  void learn(Lease lease, MonoTime now);
  void learn_absent();
  void lose();
  void give_back_if_blind(MonoTime now);

  const LeaseSubject subject_;
  const std::string identity_;
  const LeaseTimes times_;

  std::optional<Lease> known_;  ///< As last answered or observed.
  bool had_other_ = false;  ///< We have known another version, or another Lease, in which somebody may still believe.
  bool must_read_ = true;   ///< What is known may be wrong.
  MonoTime free_at_{};      ///< When another's time is over.
  MonoTime not_before_{};   ///< No call earlier.
  MonoTime read_not_before_{};      ///< Hints are looked up at a bounded rate.
  MonoTime hold_not_before_{};      ///< No write earlier.
  std::optional<MonoTime> led_at_;  ///< When anybody was last seen to lead; at first, when we began to look.

  Ask asked_ = Ask::Nothing;
  MonoTime asked_at_{};
  std::optional<LeaseTerm> term_;
  MonoTime lead_not_before_{};  ///< All calls of an earlier term are over by then.
  bool releasing_ = false;
  bool is_blind_ = false;
  std::optional<MonoTime> gave_back_at_;
  std::optional<MonoTime> yields_until_;
  std::optional<Error> problem_;
};

}  // namespace dhc::k8s
