#include "app/record/rehearsal.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "app/verdict_changes.h"
#include "domain/cluster/owner_sight.h"

namespace dhc::record {

namespace {

/// Finer than anybody reads, and coarse enough for a month in seconds.
constexpr Millis kShortestRest = Seconds(1);
/// What was asked at a moment is answered at the same one.
constexpr Millis kNextMoment{1};
/// More turns than actions that follow from each other.
constexpr int kMostRounds = 20;

std::optional<WallTime> first_of(const Fate& fate) {
  std::optional<WallTime> first;
  for (const auto& at : {fate.bad_at, fate.then, fate.now}) {
    if (at) first = std::min(first.value_or(*at), *at);
  }
  return first;
}

void add_once(std::vector<std::string>& words, std::string word) {
  if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
}

}  // namespace

Rehearsal::Rehearsal(Policy wanted) : wanted_(std::move(wanted)) {
  wanted_.mode_cap = Mode::Enforce;
  wanted_.events = false;
  wanted_.status = false;
  wanted_.own_namespace.clear();  // nothing is written, and nothing waits for it
}

Status Rehearsal::feed(std::string_view line) {
  auto step = reader_.read(line);
  if (!step) return std::unexpected(std::move(step.error()));
  if (const auto* file = std::get_if<FileStep>(&*step)) return begin(*file);
  const auto plays = order_.plays(*step);
  if (!plays) return std::unexpected(plays.error());
  if (!*plays || left_out_) return {};
  if (auto* message = std::get_if<MessageStep>(&*step)) {
    take(std::move(*message));
  } else if (const auto* taken = std::get_if<TakeStep>(&*step)) {
    take_all(taken->now);
  } else if (const auto* planned = std::get_if<PlanStep>(&*step)) {
    note_plan(planned->now);
  } else if (const auto* idle = std::get_if<IdleStep>(&*step)) {
    if (!idle->times.empty() && is_timed_) pass_to(idle->times.back().wall);
  }
  return {};
}

Status Rehearsal::begin(const FileStep& file) {
  const auto is_new = order_.begin(file);
  if (!is_new) return std::unexpected(is_new.error());
  if (!*is_new) return {};
  ++report_.runs;
  is_timed_ = false;
  left_out_ = false;
  waiting_.clear();
  actions_ = 0;
  sent_.clear();
  return {};
}

void Rehearsal::take(MessageStep step) {
  if (const auto* outcome = std::get_if<Outcome>(&step.message)) return take_answer(*outcome, step.answers);
  unlisted_.note(step.message);
  waiting_.push_back(std::move(step.message));
}

void Rehearsal::take_answer(const Outcome& outcome, std::uint64_t number) {
  const auto found = sent_.find(number);
  if (found == sent_.end()) return;
  const auto sent = std::move(found->second);
  sent_.erase(found);
  const auto& [kind, ns, name, uid] = sent.subject;
  if (outcome.sight)
    sights_.insert_or_assign(owner_key(ns, {.api_version = sent.device, .kind = kind, .name = name, .uid = uid}),
                             *outcome.sight);
  if (!outcome.status) return;
  const auto at = at_.wall;
  if (sent.name == "EvictPod") {
    past_.evicted_then(sent.subject.uid);
    auto& one = fate(Fate::Of::Eviction, sent.subject, sent.subject.uid);
    if (one.then) return;
    one.then = at;
    ++report_.then.evictions;
    if (const auto* holding = then_.find(sent.subject.uid)) report_.then.work_ended += Ledger::work(*holding, at);
  } else if (sent.name == "ApplyRule" || (sent.name == "PatchNodeTaint" && sent.device == "taint")) {
    auto& one = fate(Fate::Of::Taint, sent.subject, sent.subject.kind + "/" + sent.subject.name);
    if (sent.name == "ApplyRule") one.device = sent.device;
    if (one.then) return;
    one.then = at;
    ++report_.then.taints;
  } else if (sent.name == "PatchJob" && sent.raised_by > 0) {
    past_.credited_then(sent.subject.uid, sent.raised_by);
    auto& one = fate(Fate::Of::Credit, sent.subject, sent.subject.uid);
    one.then = one.then.value_or(at);
    ++report_.then.credits;
  }
}

void Rehearsal::take_all(const Now& recorded) {
  if (!is_timed_) {
    is_timed_ = true;
    if (begun_ && recorded.wall < at_.wall) {
      left_out_ = true;
      ++report_.left_out;
      waiting_.clear();
      return;
    }
    if (!begun_) begun_ = at_ = recorded;
    report_.from = report_.from.value_or(recorded.wall);
  }
  pass_to(recorded.wall);
  const auto shift = at_.mono - recorded.mono;
  std::vector<k8s::Delivery> seen;
  for (auto& message : std::exchange(waiting_, {})) {
    if (auto* delivery = std::get_if<k8s::Delivery>(&message)) {
      if (auto* told = std::get_if<k8s::Told>(delivery)) told->at += shift;
      then_.follow(*delivery, at_.wall);
      const auto* list = std::get_if<k8s::Snapshot>(delivery);
      if (list != nullptr && list->kind == k8s::Kind::ConfigMap) has_state_ = true;
      past_.deliver(std::move(*delivery), seen);
    } else if (auto* changed = std::get_if<PolicyChanged>(&message)) {
      const auto& recorded_policy = *changed->policy;
      for (const auto& one : recorded_policy.policies)
        add_once(report_.policies_then,
                 fmt::format("{} ({})", one.name, to_string(std::min(one.mode, recorded_policy.mode_cap))));
      wants_state_ = !recorded_policy.own_namespace.empty();
      auto policy = std::make_shared<Policy>(wanted_);
      policy->own_pod_uid = recorded_policy.own_pod_uid;
      policy->brake_release = recorded_policy.brake_release;
      policy->cap_release = recorded_policy.cap_release;
      policy->pause_until = recorded_policy.pause_until;
      policy->pause_reason = recorded_policy.pause_reason;
      policy->pauses = recorded_policy.pauses;
      policy->source = recorded_policy.source;
      inbox_.emplace_back(PolicyChanged{std::move(policy)});
    } else if (std::holds_alternative<EarlierState>(message) || std::holds_alternative<ServerClockSeen>(message)) {
      inbox_.push_back(std::move(message));
    }
  }
  deliver(std::move(seen));
  turn();
}

void Rehearsal::note_plan(const Now& recorded) {
  if (is_timed_) pass_to(recorded.wall);
  if (is_timed_ && !controller_.synced()) {
    for (auto& message : unlisted_.take()) inbox_.push_back(std::move(message));
    turn();
  }
  for (auto& told : reader_.told()) {
    if (told.of == Told::Of::Action) {
      sent_.emplace(++actions_, Sent{.name = std::move(told.name),
                                     .subject = std::move(told.subject),
                                     .device = std::move(told.device),
                                     .raised_by = told.raised_by});
    } else if (told.of == Told::Of::Begun && told.subject.kind == "Pod") {
      auto& one = fate(Fate::Of::Eviction, told.subject, told.subject.uid);
      one.device = told.device;
      one.then_why = told.name;
    }
  }
}

/// Whatever the new controller does meanwhile by itself.
void Rehearsal::pass_to(WallTime when) {
  const auto end = std::max(at_.mono, begun_->mono + std::chrono::duration_cast<Millis>(when - begun_->wall));
  const auto at = [&](MonoTime mono) { return Now{.mono = mono, .wall = begun_->wall + (mono - begun_->mono)}; };
  while (true) {
    auto next = wake_at_;
    if (const auto gone = past_.next_end()) next = std::min(next.value_or(*gone), *gone);
    if (!next || *next >= end) break;
    at_ = at(std::max(*next, at_.mono + kShortestRest));
    if (at_.mono >= end) break;
    std::vector<k8s::Delivery> gone;
    past_.pass(at_, gone);
    deliver(std::move(gone));
    turn();
  }
  at_ = at(end);
  report_.to = at_.wall;
}

void Rehearsal::deliver(std::vector<k8s::Delivery>&& deliveries) {
  for (auto& delivery : deliveries) {
    now_.follow(delivery, at_.wall);
    inbox_.emplace_back(std::in_place_type<k8s::Delivery>, std::move(delivery));
  }
}

void Rehearsal::turn() {
  for (int round = 0; round < kMostRounds; ++round) {
    const bool is_news = controller_.take(inbox_, at_);
    inbox_.clear();
    const bool is_due = wake_at_ && *wake_at_ <= at_.mono;
    if ((wants_state_ && !has_state_) || (!is_news && !is_due)) return;
    auto turn = controller_.plan(at_);
    (void)controller_.take_doubts();
    (void)controller_.take_coverage();
    (void)controller_.take_news();
    wake_at_ = turn.wake_at;
    note_verdicts();
    if (turn.actions.empty()) return;
    for (const auto& action : turn.actions) answer(action);
    at_ = {.mono = at_.mono + kNextMoment, .wall = at_.wall + kNextMoment};
  }
  wake_at_ = at_.mono + kShortestRest;
}

/// Every action is done at once; owners say what they said then.
void Rehearsal::answer(const Action& action) {
  Outcome outcome{.action = action, .status = {}};
  if (const auto* read = std::get_if<owners::ReadOwner>(&action)) {
    OwnerSight sight{.state = OwnerSight::State::Found, .meta = {}, .why = {}, .at = at_.mono};
    if (const auto known = sights_.find(owner_key(read->ns, read->owner)); known != sights_.end()) {
      sight = known->second;
      sight.at = at_.mono;
    }
    outcome.sight = std::move(sight);
  } else if (const auto* evict = std::get_if<eviction::EvictPod>(&action)) {
    auto& one = fate(Fate::Of::Eviction, {"Pod", evict->ns, evict->name, evict->uid}, evict->uid);
    if (!one.now) {
      one.now = at_.wall;
      one.device = evict->device;
      ++report_.now.evictions;
      if (const auto* holding = now_.find(evict->uid)) report_.now.work_ended += Ledger::work(*holding, at_.wall);
    }
  } else if (const auto* rule = std::get_if<taint::ApplyRule>(&action)) {
    auto& one = fate(Fate::Of::Taint, {"DeviceTaintRule", {}, rule->name, {}}, "DeviceTaintRule/" + rule->name);
    one.device = rule->device;
    if (!one.now) {
      one.now = at_.wall;
      ++report_.now.taints;
    }
  } else if (const auto* patch = std::get_if<taint::PatchNodeTaint>(&action); patch != nullptr && patch->add) {
    auto& one = fate(Fate::Of::Taint, {"Node", {}, patch->node, {}}, "Node/" + patch->node);
    if (!one.now) {
      one.now = at_.wall;
      ++report_.now.taints;
    }
  } else if (const auto* job = std::get_if<job_retry::PatchJob>(&action);
             job != nullptr && job->limit > job->limit_before) {
    auto& one = fate(Fate::Of::Credit, {"Job", job->ns, job->name, job->uid}, job->uid);
    one.now = one.now.value_or(at_.wall);
    ++report_.now.credits;
  }
  std::vector<k8s::Delivery> seen;
  past_.show(action, at_, seen);
  inbox_.emplace_back(std::move(outcome));
  deliver(std::move(seen));
}

void Rehearsal::note_verdicts() {
  const auto& verdicts = controller_.verdicts();
  if (said_ == verdicts) return;
  for (const auto& verdict : changes_between(said_, verdicts).begun) {
    if (verdict.subject.kind != "Pod") continue;
    auto& one = fate(Fate::Of::Eviction, verdict.subject, verdict.subject.uid);
    one.device = verdict.device;
    one.now_why = to_string(verdict.reason);
    one.now_message = verdict.message;
  }
  said_ = verdicts;
}

Fate& Rehearsal::fate(Fate::Of of, const Subject& subject, const std::string& key) {
  auto& one = fates_[{of, key}];
  one.of = of;
  if (one.subject.name.empty()) one.subject = subject;
  return one;
}

RehearsalReport Rehearsal::finish() {
  if (begun_) {
    then_.close(at_.wall);
    now_.close(at_.wall);
  }
  for (const auto* ledger : {&then_, &now_}) {
    for (const auto& [uid, holding] : ledger->all()) {
      if (!holding.first_bad) continue;
      auto& one = fate(Fate::Of::Eviction, holding.pod, uid);
      one.bad_at = std::min(one.bad_at.value_or(*holding.first_bad), *holding.first_bad);
      if (one.device.empty()) one.device = holding.bad_device;
    }
  }
  report_.then.held_bad = then_.bad();
  report_.now.held_bad = now_.bad();
  for (auto& [key, one] : fates_) report_.fates.push_back(std::move(one));
  fates_.clear();
  std::ranges::sort(report_.fates, [](const Fate& a, const Fate& b) {
    return std::tuple(first_of(a), a.of, a.subject, a.device) < std::tuple(first_of(b), b.of, b.subject, b.device);
  });
  return std::move(report_);
}

}  // namespace dhc::record
