#include "k8s-client/protocol/lease_machine.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"

namespace dhc::k8s {

namespace {
/// Of one call: a renewal deadline has room for two.
constexpr Millis kCallTotal = Seconds(4);
/// After a refusal that only says that somebody was faster.
constexpr Millis kSoon{250};
/// Between two looks that nothing but hints of the watch ask for.
constexpr Millis kLookInterval{500};
/// A cluster without a leader for longer than this needs an operator: four times what the death of one costs.
constexpr Millis kLeaderless = Seconds(60);
/// Blindness that others share must not make the Lease wander without end.
constexpr Millis kGivesBackEvery = std::chrono::minutes(10);
/// Longer than our own term, which others must wait for, and shorter than what is said to be without a leader.
constexpr Millis kYields = Seconds(45);
/// **Source:** LeaseSpec.leaseTransitions is an int32; seen on 1.37.1: one more is stored as -2147483648, and refused.
constexpr std::int64_t kMostTransitions = 2147483647;

Millis whole_seconds(std::int64_t seconds) {
  constexpr std::int64_t kLongest = 24 * 3600;  // of a number that makes no sense
  return Seconds(std::clamp<std::int64_t>(seconds, 0, kLongest));
}

/// A holder that gives up says so with an empty holder and a second's duration. **Source:** client-go's release.
bool was_released(const Lease& lease) {
  return lease.holder.empty() && lease.duration_seconds == 1 && !lease.renew_time.empty();
}

/// Nobody holds it, and nothing says that anybody ever has.
bool is_blank(const Lease& lease) { return lease.holder.empty() && lease.renew_time.empty(); }

/// Another text than the last renewal's: who sees no change takes us for dead, and our wall clock may stand still.
std::string renewal(const Lease& last, WallTime now) {
  auto text = format_micro_time(now);
  if (text == last.renew_time) text = format_micro_time(now + std::chrono::microseconds(1));
  return text;
}

/// One more than there were; after the last that fits, from the beginning.
std::int64_t next_transition(const Lease& lease) {
  if (lease.renew_time.empty()) return 0;
  return lease.transitions < kMostTransitions ? std::max<std::int64_t>(lease.transitions, 0) + 1 : 0;
}

/// Whether nobody has renewed it in between. Between two versions that nobody holds, somebody may have held it.
bool same_record(const Lease& a, const Lease& b) {
  const bool unheld_between = !a.holder.empty() || a.meta.resource_version == b.meta.resource_version;
  return a.meta.uid == b.meta.uid && a.holder == b.holder && a.renew_time == b.renew_time &&
         a.transitions == b.transitions && unheld_between;
}

/// Somebody else has changed, made or deleted it: look, then try again.
bool was_faster(const Error& error) {
  switch (error.kind) {
    case ErrorKind::Conflict:
    case ErrorKind::Contested:
    case ErrorKind::NotFound:
    case ErrorKind::Gone:
      return true;
    case ErrorKind::Invalid:
    case ErrorKind::Forbidden:
    case ErrorKind::Blocked:
    case ErrorKind::TooManyRequests:
    case ErrorKind::Unauthorized:
    case ErrorKind::Doubtful:
    case ErrorKind::Declined:
    case ErrorKind::Outdated:
    case ErrorKind::Altered:
    case ErrorKind::Unread:
    case ErrorKind::Unavailable:
    case ErrorKind::TimedOut:
    case ErrorKind::Cancelled:
    case ErrorKind::Malformed:
      return false;
  }
  return false;
}
}  // namespace

LeaseMachine::LeaseMachine(LeaseSubject subject, std::string identity, LeaseTimes times)
    : subject_(std::move(subject)), identity_(std::move(identity)), times_(times) {}

std::optional<LeaseTerm> LeaseMachine::term(MonoTime now) const {
  if (!term_ || now >= term_->begin_until || now < lead_not_before_) return std::nullopt;
  return term_;
}

bool LeaseMachine::is_leaderless(MonoTime now) const { return led_at_ && now - *led_at_ >= kLeaderless; }

std::string LeaseMachine::holder() const { return known_ ? known_->holder : std::string(); }

void LeaseMachine::lose() {
  if (!term_) return;
  lead_not_before_ = std::max(lead_not_before_, term_->end_by);
  term_.reset();
}

void LeaseMachine::give_back_if_blind(MonoTime now) {
  if (!is_blind_ || !term_ || now < lead_not_before_) return;
  if (gave_back_at_ && now - *gave_back_at_ < kGivesBackEvery) return;
  gave_back_at_ = now;
  yields_until_ = now + kYields;
  lose();
}

void LeaseMachine::release() {
  releasing_ = true;
  lose();
  // A write whose answer we do not have may have made it ours.
  must_read_ = must_read_ || asked_ != Ask::Nothing || problem_.has_value();
  asked_ = Ask::Nothing;
  not_before_ = hold_not_before_ = read_not_before_ = MonoTime();
}

LeaseStep LeaseMachine::call(Ask ask, const Now& now) {
  asked_ = ask;
  asked_at_ = now.mono;
  Request request;
  switch (ask) {
    case Ask::Nothing:
    case Ask::Read:
      request = build_lease_get(subject_);
      break;
    case Ask::Create:
      request = build_lease_create(subject_);
      break;
    case Ask::Hold:
    case Ask::Release:
      request = hold_request(now);
      break;
  }
  // A renewal that hangs must not keep us from seeing that our time is over.
  const Millis total = term_ ? std::min(kCallTotal, term_->begin_until - now.mono) : kCallTotal;
  request.timeouts = {.connect = total, .idle = total, .total = total};
  return LeaseCall{std::move(request)};
}

Request LeaseMachine::hold_request(const Now& now) const {
  Lease wanted = *known_;
  wanted.renew_time = renewal(*known_, now.wall);
  if (asked_ == Ask::Release) {
    wanted.holder.clear();
    wanted.duration_seconds = 1;
    return build_lease_write(subject_, wanted);
  }
  if (!is_ours()) wanted.transitions = next_transition(*known_);
  // Somebody may have taken it away.
  if (!is_ours() || wanted.acquire_time.empty()) wanted.acquire_time = wanted.renew_time;
  wanted.holder = identity_;
  wanted.duration_seconds = std::chrono::duration_cast<Seconds>(times_.duration).count();
  return build_lease_write(subject_, wanted);
}

LeaseStep LeaseMachine::release_step(const Now& now) {
  if (now.mono < not_before_) return LeaseWait{not_before_};
  if (must_read_) return call(Ask::Read, now);
  if (is_ours()) return call(Ask::Release, now);
  return LeaseOver{};
}

LeaseStep LeaseMachine::next(const Now& now) {
  if (term_ && now.mono >= term_->begin_until) lose();
  if (!led_at_) led_at_ = now.mono;
  if (releasing_) return release_step(now);
  give_back_if_blind(now.mono);
  MonoTime at = not_before_;
  auto ask = Ask::Hold;
  if (must_read_) {
    ask = Ask::Read;
    at = std::max(at, read_not_before_);
  } else if (!known_) {
    ask = Ask::Create;
  } else {
    at = std::max(at, hold_not_before_);
    if (!is_ours()) at = std::max(at, free_at_);
    if (yields(now.mono)) {
      // Not before every call that we have begun is over: with the release others may begin.
      if (is_ours()) ask = Ask::Release;
      at = std::max(at, is_ours() ? lead_not_before_ : *yields_until_);
    }
  }
  if (now.mono >= at) return call(ask, now);
  if (term_) at = std::min(at, term_->begin_until);
  if (term_ && now.mono < lead_not_before_) at = std::min(at, lead_not_before_);
  // Not to act, but to say so.
  if (!is_leaderless(now.mono)) at = std::min(at, *led_at_ + kLeaderless);
  return LeaseWait{at};
}

void LeaseMachine::answered(const Result<Response>& answer, const Now& now, double chance) {
  const auto ask = std::exchange(asked_, Ask::Nothing);
  const auto lease = answer ? parse_lease(*answer) : Result<Lease>(std::unexpected(answer.error()));
  if (ask == Ask::Read) {
    read_not_before_ = now.mono + kLookInterval;
    if (lease || lease.error().kind == ErrorKind::NotFound) return answered_read(lease, now);
  } else if (ask != Ask::Nothing && (lease || was_faster(lease.error()))) {
    // What is not found when it is made is the namespace.
    const bool made_nowhere = ask == Ask::Create && !lease && lease.error().kind == ErrorKind::NotFound;
    if (!made_nowhere) return answered_write(ask, lease, now);
  }
  if (!lease) failed(ask, lease.error(), now, chance);
}

void LeaseMachine::answered_read(const Result<Lease>& answer, const Now& now) {
  problem_.reset();
  must_read_ = false;
  if (answer) {
    learn(*answer, now.mono);
  } else {
    learn_absent();
  }
  if (!is_ours()) lose();
}

void LeaseMachine::answered_write(Ask ask, const Result<Lease>& answer, const Now& now) {
  problem_.reset();
  if (!answer) {  // whether that costs us the Lease is seen next
    must_read_ = true;
    read_not_before_ = MonoTime();
    hold_not_before_ = asked_at_ + kSoon;
    return;
  }
  learn(*answer, now.mono);
  must_read_ = false;
  if (ask != Ask::Hold) return;
  hold_not_before_ = asked_at_ + times_.retry;
  if (!is_ours()) return lose();  // the server has stored something else than we sent
  // From when it was sent, not from when it was answered: others may have seen it since.
  led_at_ = now.mono;
  term_ = LeaseTerm{.begin_until = asked_at_ + times_.renew_deadline,
                    .end_by = asked_at_ + times_.duration - times_.margin};
}

void LeaseMachine::failed(Ask ask, const Error& error, const Now& now, double chance) {
  static constexpr std::array<std::string_view, 5> kVerbs = {"use", "get", "create or patch", "patch", "patch"};
  problem_ = error;
  problem_->message = fmt::format("cannot {} Lease {}/{}: {}", kVerbs.at(static_cast<std::size_t>(ask)), subject_.ns,
                                  subject_.name, error.message);
  if (releasing_) {
    // It may have happened.
    must_read_ = true;
    not_before_ = now.mono + kSoon;
    return;
  }
  // A proxy's wish for minutes must not outlast a holder's time, ours or another's: who waits longer than others is not
  // there when it is needed. One call in so long a time troubles nobody.
  const Millis most = term_ ? times_.renew_deadline - 2 * times_.retry : times_.duration;
  const double spread = chance >= 0 && chance < 1 ? chance : 0.5;
  const auto jitter = Millis(static_cast<Millis::rep>(static_cast<double>(times_.retry.count()) * 0.2 * spread));
  not_before_ = now.mono + std::max(times_.retry + jitter, std::min(error.retry_after.value_or(Millis::zero()), most));
}

void LeaseMachine::learn(Lease lease, MonoTime now) {
  const bool same = known_ && same_record(*known_, lease);
  had_other_ = had_other_ || (known_ && known_->meta.resource_version != lease.meta.resource_version);
  known_ = std::move(lease);
  if (same || is_ours()) return;
  if (!known_->holder.empty()) led_at_ = now;
  if (was_released(*known_)) {
    free_at_ = now;
  } else if (is_blank(*known_)) {
    // New, or emptied. If we knew another record before it, that is gone, perhaps under a holder who cannot know yet.
    // If not, we have just started: a holder who can speak to the server finds out with its next renewal.
    free_at_ = now + (had_other_ ? times_.duration : times_.retry + times_.margin);
  } else {
    // Held; or emptied by somebody who is not its holder, and who has not told it.
    free_at_ = now + std::max(times_.duration, whole_seconds(known_->duration_seconds));
  }
}

void LeaseMachine::learn_absent() {
  had_other_ = had_other_ || known_.has_value();
  known_.reset();
}

void LeaseMachine::observed(const Delivery& delivery, const Now& now) {
  const auto see = [&](const Object& object) {
    const auto* lease = std::get_if<Lease>(&object);
    if (lease == nullptr || lease->meta.name != subject_.name || lease->meta.ns != subject_.ns) return false;
    if (known_ && known_->meta.resource_version == lease->meta.resource_version) return true;
    if (!is_ours()) {
      learn(*lease, now.mono);
    } else if (lease->holder != identity_) {
      must_read_ = true;  // stolen, or the watch is behind us
    }
    return true;
  };
  if (const auto* snapshot = std::get_if<Snapshot>(&delivery)) {
    bool found = false;
    for (const auto& object : snapshot->objects) found = see(object) || found;
    if (!found && known_) must_read_ = true;
  } else if (const auto* upsert = std::get_if<Upsert>(&delivery)) {
    (void)see(upsert->object);
  } else if (std::holds_alternative<Remove>(delivery) && known_) {
    must_read_ = true;
  }
}

}  // namespace dhc::k8s
