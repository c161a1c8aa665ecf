#include "reconcilers/notice/conditions.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "domain/contract/condition_text.h"
#include "domain/contract/names.h"
#include "reconcilers/notice/gang_notices.h"
#include "reconcilers/notice/notice_annotation.h"
#include "reconcilers/notice/peers.h"

namespace dhc::notice {

namespace {

/// A driver that changes its words every second must not make us write every second.
constexpr Millis kRewordInterval = Seconds(60);

// Of our condition while it is True, and while it is False.
constexpr std::string_view kToldReason = "DeviceUnhealthy";
constexpr std::string_view kRecoveredReason = "Recovered";

/// As `NextSteps` says it.
bool says_stop(std::string_view message) {
  return std::ranges::any_of(std::array{Reason::Paused, Reason::Braked}, [&](Reason reason) {
    return message.contains(fmt::format("no eviction ({})", to_string(reason))) ||
           message.contains(fmt::format("; {}: ", to_string(reason)));
  });
}

class ConditionPlanner {
 public:
  ConditionPlanner(const PlanInput& input, const NextSteps& next) : input_(input), next_(next), gangs_(input) {}

  Planned<ApplyCondition> run() {
    std::map<std::string, std::vector<const AffectedPod*>> open;
    for (const auto* affected : input_.in_focus) {
      if (affected->mode == Mode::Enforce && affected->open) open[affected->pod().meta.uid].push_back(affected);
    }
    for (const auto& [uid, affected_pods] : open) raise(affected_pods);
    const auto& told = input_.world.with_condition();
    if (input_.focus == nullptr || input_.focus->all) {
      for (const auto& uid : told) {
        if (!open.contains(uid)) settle(*input_.world.pod(uid));
      }
    } else {
      for (const auto& uid : input_.focus->pods) {
        if (told.contains(uid) && !open.contains(uid)) settle(*input_.world.pod(uid));
      }
    }
    std::optional<std::set<std::string>> all_open;  // also of those that are not decided about anew
    const auto is_open = [&](const std::string& uid) {
      if (!all_open) {
        all_open.emplace();
        for (const auto& affected : input_.affected_pods) {
          if (affected.mode == Mode::Enforce && affected.open) all_open->insert(affected.pod().meta.uid);
        }
      }
      return all_open->contains(uid);
    };
    auto others = notices_of_peers(told_, is_open, input_);
    for (auto& [uid, notice] : notices_of_gangs(told_in_gangs_, is_open, input_, planned_.wake_at))
      others[uid] = std::move(notice);
    for (auto& [uid, notice] : others) tell_peer(*input_.world.pod(uid), notice);
    return std::move(planned_);
  }

 private:
  void raise(const std::vector<const AffectedPod*>& affected_pods) {
    const auto& pod = affected_pods.front()->pod();
    if (!affected_pods.front()->record->readable) return;  // nothing is decided on a version that could not be read
    Wake wake;
    auto said = notice_for(affected_pods, input_, next_, wake);
    const auto told_with = gangs_told_with(affected_pods, said);
    planned_.wake(affected_pods.front()->key, wake.at());
    const bool asks_peers = said && said->evict && asks_for_peers(affected_pods);
    // What its peers are told is decided with each plan.
    if (asks_peers) again(affected_pods);
    const bool is_told = tell(affected_pods, said);
    // Before it has been told itself nobody knows since when: each plan would say another time.
    if (!is_told && !was_told(*affected_pods.front()->record)) return;
    if (asks_peers) told_.push_back({.pod = &pod, .notice = *said});
    std::ranges::copy(told_with, std::back_inserter(told_in_gangs_));
  }

  [[nodiscard]] bool was_told(const PodRecord& record) const {
    return (record.told && record.told->noticed()) || input_.requests.notices().sent_at(record.pod.meta.uid);
  }

  void again(const std::vector<const AffectedPod*>& affected_pods) {
    for (const auto* affected : affected_pods) planned_.again.insert(affected->key);
  }

  /// True if that is sent now.
  bool tell(const std::vector<const AffectedPod*>& affected_pods, const std::optional<Notice>& said) {
    const auto& pod = affected_pods.front()->pod();
    std::vector<ConditionLine> lines;
    WallTime since = affected_pods.front()->since.wall;
    for (const auto* affected : affected_pods) {
      since = std::min(since, affected->since.wall);
      lines.push_back(next_.line_of(*affected));
      planned_.wake(affected->key, next_.changes_at(*affected));
    }
    std::ranges::sort(lines, {}, &ConditionLine::device);
    const auto* seen = our_condition(pod);
    const auto message = condition_message(lines);
    const auto notice = annotation_of(said, pod, input_);
    // Without a notice of ours nothing is asked for: if one was shown, the condition says so and changes too.
    const bool told_so = notice.empty() || k8s::find(pod.meta.annotations, kNoticeAnnotation) == notice;
    if (seen != nullptr && seen->status == "True" && seen->message == message && told_so) return false;
    const auto& record = *affected_pods.front()->record;
    // What goes must not read to its end that it stays.
    const bool is_going = next_.is_going(pod) && seen != nullptr && says_stop(seen->message);
    const bool only_words =
        !is_going && seen != nullptr && seen->status == "True" && shows_but_for_words(notice, pod) &&
        std::ranges::all_of(read_condition(message).devices,
                            [&](const auto& word) { return record.word_of(word.first) != nullptr; });
    const auto* attempt = input_.requests.condition(pod.meta.uid);
    if (only_words && attempt != nullptr && input_.now.mono - attempt->at < kRewordInterval) {
      planned_.wake(affected_pods.front()->key, attempt->at + kRewordInterval);
      return false;
    }
    return apply(pod,
                 ApplyCondition::Wanted{.status = true,
                                        .reason = std::string(kToldReason),
                                        .message = message,
                                        .last_transition = since,
                                        .noticed_at = read_condition(message).noticed()},
                 notice);
  }

  /// Whoever goes with the pod is told so too.
  std::vector<ToldGang> gangs_told_with(const std::vector<const AffectedPod*>& affected_pods,
                                        std::optional<Notice>& said) {
    std::vector<ToldGang> told;
    for (const auto* affected : affected_pods) {
      const auto* unit = gangs_.of(*affected);
      if (unit == nullptr || unit->members.empty()) continue;
      planned_.again.insert(affected->key);
      if (!said || !said->evict) continue;
      said->gang = unit->gang.words;
      if (to_string(affected->key) == said->device) told.push_back({.unit = unit, .notice = *said});
    }
    return told;
  }

  /// What is to become of a True, by one device that it names and the pod still holds.
  enum class Fate : std::uint8_t { Stays, Recovered, Nothing };

  Fate fate_of(const k8s::Pod& pod, const HeldDevice& held_device, SignalSource source) const {
    const bool covered = policy_for(input_.world, input_.policy, pod, held_device.key) != nullptr;
    if (covered && !enforced(input_.world, input_.policy, pod, held_device.key))
      return Fate::Stays;  // not ours to change now
    // The next process would take it for the memory of the new card's.
    if (input_.world.may_be_of_card_before(held_device.key, held_device)) return Fate::Nothing;
    // Its signal is gone, or there would be an affected pod; but what nobody publishes has said nothing by that.
    if (source == SignalSource::Claim) return Fate::Recovered;
    if (source == SignalSource::Taint) {
      if (input_.world.kept_taint(held_device.key)) return covered ? Fate::Stays : Fate::Nothing;
      return input_.world.inventory().tainted_by_driver(held_device.key) ? Fate::Recovered : Fate::Stays;
    }
    const auto* state = input_.world.tracker().find(held_device.key);
    if (state == nullptr || !state->has_source || state->health == k8s::Health::Unknown) return Fate::Stays;
    if (state->health == k8s::Health::Healthy) return Fate::Recovered;
    return covered ? Fate::Stays : Fate::Nothing;  // nobody asks us to speak of it any more
  }

  /// The pod has our condition and no open incident: has the device recovered, or is nothing known of it any more?
  void settle(const PodRecord& record) {
    const auto& pod = record.pod;
    const auto* seen = our_condition(pod);
    if (!is_live(pod) || !record.readable || input_.policy.mode_cap != Mode::Enforce) return;
    if (is_of_other(*seen) && !shows_notice(pod)) return;
    if (seen->status != "True") return forget(record, *seen);
    std::vector<RecoveryLine> recovered;
    for (const auto& held_device : record.held_devices) {
      auto device = to_string(held_device.key);
      const auto* word = record.word_of(device);
      if (word == nullptr) continue;
      const auto fate = fate_of(pod, held_device, word->source);
      if (fate == Fate::Stays) return;
      if (fate == Fate::Nothing) continue;
      const auto* state = input_.world.tracker().find(held_device.key);
      const bool timed = state != nullptr && state->recovered_at;
      recovered.push_back({.device = std::move(device),
                           .since = timed ? state->recovered_at->wall : input_.now.wall,
                           .probation_until = input_.incidents.probation_of(held_device.key, input_.now.wall)});
    }
    if (recovered.empty()) return (void)apply(pod, std::nullopt);
    std::ranges::sort(recovered, {}, &RecoveryLine::device);
    apply(pod,
          ApplyCondition::Wanted{.status = false,
                                 .reason = std::string(kRecoveredReason),
                                 .message = recovery_message(recovered),
                                 .last_transition = input_.now.wall},
          annotation_of(notice_of_recovery(pod, input_), pod, input_));
  }

  /// What we take away of another program's condition leaves it there, to be taken away again and again.
  [[nodiscard]] static bool is_of_other(const k8s::Condition& seen) {
    return seen.reason != (seen.status == "True" ? kToldReason : kRecoveredReason);
  }

  [[nodiscard]] bool shows_notice(const k8s::Pod& pod) const {
    const auto text = k8s::find(pod.meta.annotations, kNoticeAnnotation);
    return text && !input_.requests.notices().is_contested(pod.meta.uid, *text);
  }

  /// A False that speaks of no device which the pod still holds says nothing any more.
  void forget(const PodRecord& record, const k8s::Condition& seen) {
    const auto words = read_recovery(seen.message);
    const bool speaks = words.cut || std::ranges::any_of(record.held_devices, [&](const HeldDevice& held_device) {
                          return words.find(to_string(held_device.key)) != nullptr;
                        });
    if (!speaks) apply(record.pod, std::nullopt);
  }

  /// The condition that is there stays, if it is one of a recovery: an apply takes away what it does not name.
  void tell_peer(const PodRecord& record, const std::optional<Notice>& notice) {
    const auto text = annotation_of(notice, record.pod, input_);
    if (text.empty() && notice) return;  // another client's
    if (!text.empty() && shows_but_for_words(text, record.pod)) return;
    const auto* seen = our_condition(record.pod);
    std::optional<ApplyCondition::Wanted> kept;
    if (seen != nullptr) {
      kept = ApplyCondition::Wanted{.status = seen->status == "True",
                                    .reason = seen->reason,
                                    .message = seen->message,
                                    .last_transition = seen->last_transition.value_or(input_.now.wall)};
    }
    apply(record.pod, std::move(kept), text);
  }

  /// True if it is sent now.
  bool apply(const k8s::Pod& pod, std::optional<ApplyCondition::Wanted> wanted, std::string notice = {}) {
    if (pod.meta.deletion) return false;
    ApplyCondition action{.ns = pod.meta.ns,
                          .name = pod.meta.name,
                          .uid = pod.meta.uid,
                          .wanted = std::move(wanted),
                          .notice = std::move(notice)};
    const auto said = action.said();
    const auto at = input_.requests.may_send_condition_at(pod, said);
    const auto& held_devices = input_.world.pod(pod.meta.uid)->held_devices;
    const bool is_decided = !held_devices.empty() && is_in(input_.focus, held_devices.front().key);
    if (at && *at > input_.now.mono && is_decided) planned_.wake(held_devices.front().key, at);
    if (at && *at > input_.now.mono && !is_decided) {
      if (!planned_.wake_at || *at < *planned_.wake_at) planned_.wake_at = at;
      planned_.pods_again.insert(pod.meta.uid);
    }
    if (!input_.requests.may_send_condition(pod, said, input_.now)) return false;
    planned_.actions.push_back(std::move(action));
    return true;
  }

  const PlanInput& input_;
  const NextSteps& next_;
  Gangs gangs_;
  std::vector<ToldPod> told_;
  std::vector<ToldGang> told_in_gangs_;
  Planned<ApplyCondition> planned_;
};

}  // namespace

Planned<ApplyCondition> plan_conditions(const PlanInput& input, const NextSteps& next) {
  return ConditionPlanner(input, next).run();
}

}  // namespace dhc::notice
