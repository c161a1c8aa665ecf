#include "app/foresight.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "app/controller.h"
#include "domain/cluster/owner_sight.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"

namespace dhc {

namespace {

/// Finer than a person reads, and coarse enough for a day in seconds.
constexpr Millis kStep = Seconds(1);
/// What was read at a moment is judged at the same one.
constexpr Millis kSameMoment{1};

class Play {
 public:
  Play(const std::function<Outcome(const owners::ReadOwner&)>& read, const Now& now)
      : read_(read), begun_(now), now_(now) {}

  void begin(std::span<const k8s::Delivery> sight, const EarlierState& earlier, Policy policy) {
    // As who takes over from a leader: what it has written down counts, and what it judged is believed.
    messages_.emplace_back(Leading{.leads = false});
    for (const auto& delivery : sight) messages_.emplace_back(delivery);
    messages_.emplace_back(earlier);
    messages_.emplace_back(PolicyChanged{.policy = std::make_shared<const Policy>(std::move(policy))});
    speak();
    (void)controller_.turn(messages_, now_);
    messages_.clear();
    messages_.emplace_back(Leading{.leads = true});
  }

  void run_until(MonoTime end) {
    while (now_.mono <= end) {
      speak();
      const auto turn = controller_.turn(messages_, now_);
      messages_.clear();
      note();
      const bool has_read = answer(turn.actions);
      const auto wake = turn.wake_at.value_or(MonoTime::max());
      pass_to(has_read ? now_.mono + kSameMoment : std::max(wake, now_.mono + kStep));
    }
  }

  [[nodiscard]] std::vector<Foreseen> foreseen() && {
    std::vector<Foreseen> all;
    for (auto& [key, one] : found_) all.push_back(std::move(one));
    std::ranges::sort(all, {}, [](const Foreseen& one) {
      return std::tie(one.verdict.subject, one.verdict.device, one.begins, one.verdict.reason);
    });
    return all;
  }

  [[nodiscard]] const Controller& controller() const { return controller_; }

 private:
  using Key = std::tuple<Subject, std::string, Reason>;

  /// No watch is silent in a rehearsal.
  void speak() {
    for (const auto kind : k8s::kAllKinds) {
      auto name = kind == k8s::Kind::ConfigMap ? std::string(kIncidentsName) : std::string();
      // In place: g++ 12 takes a Delivery that is moved here for uninitialized.
      messages_.emplace_back(std::in_place_type<k8s::Delivery>,
                             k8s::Told{.kind = kind, .name = std::move(name), .at = now_.mono});
    }
  }

  void note() {
    const auto passed = now_.mono - begun_.mono;
    for (auto& [key, one] : found_) {
      if (!one.ends) one.ends = passed;
    }
    for (const auto& verdict : controller_.verdicts()) {
      const Key key{verdict.subject, verdict.device, verdict.reason};
      auto& one = found_.try_emplace(key, Foreseen{.verdict = verdict, .begins = passed, .ends = {}}).first->second;
      one.verdict = verdict;
      one.ends.reset();
    }
  }

  /// Whether anything was read. What is not carried out was never sent.
  bool answer(const std::vector<Action>& actions) {
    bool has_read = false;
    for (const auto& action : actions) {
      if (const auto* wanted = std::get_if<owners::ReadOwner>(&action)) {
        messages_.emplace_back(read(*wanted));
        has_read = true;
      } else {
        messages_.emplace_back(Outcome{.action = action, .status = fail(ErrorKind::Cancelled, "only rehearsed")});
      }
    }
    return has_read;
  }

  /// Once for each owner: what it says does not change either.
  Outcome read(const owners::ReadOwner& wanted) {
    const auto [entry, is_new] = reads_.try_emplace(owner_key(wanted.ns, wanted.owner));
    if (is_new) entry->second = read_(wanted);
    auto outcome = *entry->second;
    outcome.action = wanted;
    return outcome;
  }

  void pass_to(MonoTime when) {
    const auto passed = std::min(when, now_.mono + std::chrono::hours(24 * 366)) - now_.mono;
    now_ = {.mono = now_.mono + passed, .wall = now_.wall + passed};
  }

  const std::function<Outcome(const owners::ReadOwner&)>& read_;
  const Now begun_;
  Now now_;
  Controller controller_;
  std::vector<Message> messages_;
  std::map<Key, Foreseen> found_;
  std::map<std::string, std::optional<Outcome>> reads_;  // by owner_key
};

std::size_t count_of(std::span<const k8s::Delivery> sight, k8s::Kind kind) {
  std::size_t count = 0;
  for (const auto& delivery : sight) {
    const auto* snapshot = std::get_if<k8s::Snapshot>(&delivery);
    if (snapshot != nullptr && snapshot->kind == kind) count = snapshot->objects.size();
  }
  return count;
}

}  // namespace

Foresight foresee(std::span<const k8s::Delivery> sight, const EarlierState& earlier, Policy policy, const Now& now,
                  Millis horizon, const std::function<Outcome(const owners::ReadOwner&)>& read) {
  policy.mode_cap = Mode::Observe;
  policy.events = false;
  policy.own_namespace.clear();  // nothing is written, and nothing waits for it
  Play play(read, now);
  play.begin(sight, earlier, std::move(policy));
  play.run_until(now.mono + horizon);
  const auto stats = play.controller().stats();
  return {.foreseen = std::move(play).foreseen(),
          .nodes = count_of(sight, k8s::Kind::Node),
          .pods = stats.pods,
          .devices_unhealthy = stats.devices_unhealthy};
}

}  // namespace dhc
