#include "tests/support/core/scenario.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "app/earlier_state.h"
#include "domain/contract/names.h"
#include "domain/contract/reasons.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/api_error.h"
#include "reconcilers/eviction/build.h"
#include "reconcilers/eviction/exchange.h"
#include "reconcilers/hand_over/build.h"
#include "reconcilers/incident_state/build.h"
#include "reconcilers/job_retry/build.h"
#include "reconcilers/notice/build.h"
#include "reconcilers/owners/lookup.h"
#include "reconcilers/status/build.h"
#include "reconcilers/taint/answer.h"
#include "reconcilers/taint/build.h"
#include "tests/support/core/wide_caps.h"

namespace dhc::test {
namespace {

/// No jitter: scenarios are about what happens, not about when exactly a wait ends.
constexpr double kChance = 0.5;
constexpr int kMaxTurns = 500;

Result<k8s::Response> judged(const sim::Answer& answer) {
  const auto response = sim::to_response(answer);
  if (answer.status >= 300) return std::unexpected(k8s::error_from_response(response));
  return response;
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

Result<k8s::Request> request_for(const Action& action) {
  return std::visit(
      Overloaded{[](const eviction::EvictPod& evict) { return eviction::build_eviction(evict); },
                 [](const notice::ApplyCondition& condition) { return notice::build_condition(condition); },
                 [](const notice::EmitEvent& event) { return notice::build_event(event, "scenario"); },
                 [](const taint::ApplyRule& rule) { return taint::build_rule(rule); },
                 [](const taint::DeleteRule& rule) { return taint::build_delete(rule); },
                 [](const taint::PatchNodeTaint& node) { return taint::build_node_taint(node); },
                 [](const hand_over::ApplyNodeConditions& told) { return hand_over::build_conditions(told); },
                 [](const hand_over::MakeObject& made) { return build_kinds(made.object); },
                 [](const hand_over::RemoveObject& removal) { return build_kinds(removal.object); },
                 [](const incident_state::WriteState& state) { return incident_state::build_state(state); },
                 [](const status::WriteStatus& told) { return status::build_status(told, "scenario"); },
                 [](const job_retry::PatchJob& patch) { return job_retry::build_patch(patch); },
                 [](const job_retry::RecreateJob& made) { return job_retry::build_read(made); },
                 [](const owners::ReadOwner&) -> Result<k8s::Request> {
                   return fail(ErrorKind::Invalid, "a read of an owner is more than one request");
                 }},
      action);
}

/// What `execute` makes of an answer beyond its error: an Event or replacement that is there and a rule that
/// is gone are done.
bool is_done(const Action& action, ErrorKind kind) {
  return (std::holds_alternative<notice::EmitEvent>(action) && kind == ErrorKind::Conflict) ||
         (std::holds_alternative<taint::DeleteRule>(action) && kind == ErrorKind::NotFound) ||
         (std::holds_alternative<job_retry::RecreateJob>(action) && kind == ErrorKind::Conflict);
}

void note(std::optional<MonoTime>& earliest, std::optional<MonoTime> when) {
  if (when && (!earliest || *when < *earliest)) earliest = when;
}

}  // namespace

struct Scenario::Watch {
  explicit Watch(const k8s::WatchTarget& target)
      : kind(target.kind), is_of_earlier(target.name == kStateName), session(target) {}
  k8s::Kind kind;
  bool is_of_earlier;  // 0.1.0's state
  k8s::WatchSession session;
  std::optional<sim::WatchStream> open;
  std::optional<MonoTime> wait_until;
  MonoTime spoke_at;  // the last byte, or the request
  Millis idle{0};
  bool held = false;
  bool is_mute = false;
};

Scenario::Scenario(std::uint64_t seed) : Lab(seed) {
  policy_.mode_cap = Mode::Enforce;
  policy_.policies.emplace_back();
  policy_.policies.front().name = "gpus";
  policy_.policies.front().mode = Mode::Enforce;
  policy_.policies.front().evict = EvictRules{};
  policy_.limits.evictions_per_minute = 60;
  restart_controller();
}

Scenario::~Scenario() = default;

void Scenario::send_policy() {
  auto policy = std::make_shared<Policy>(policy_);
  if (!caps_hold_) widen_caps(policy->limits);
  truth_.told(*policy);
  for (const auto& rules : policy->policies) {
    if (rules.job_retry && rules.job_retry->take_back) conduct_.let_take_back();
  }
  inbox_.emplace_back(PolicyChanged{std::move(policy)});
}

void Scenario::reject_policy(std::string why) {
  inbox_.emplace_back(PolicyRejected{.why = std::move(why), .source = policy_.source});
}

void Scenario::webhook_says(std::string problem) { inbox_.emplace_back(WebhookSeen{std::move(problem)}); }

void Scenario::lead(bool leads) {
  leads_ = leads;
  inbox_.emplace_back(Leading{.leads = leads});
}

void Scenario::restore_etcd(const sim::Store& backup) {
  cluster.restore_etcd(backup);
  conduct_.etcd_restored();
  truth_.etcd_restored();
}

void Scenario::spoil_state(std::optional<std::string> text) {
  const auto& ns = policy_.own_namespace;
  const std::string name(kIncidentsName);
  if (cluster.get(sim::Res::ConfigMaps, ns, name) == nullptr) return;
  truth_.memory_lost();
  if (text) return cluster.set_config_map(ns, name, {{std::string(kIncidentsEntry), *std::move(text)}});
  (void)cluster.kubectl_delete(sim::Res::ConfigMaps, ns, name);
}

void Scenario::set_clock_ahead(Millis ahead, bool is_measured) {
  truth_.clock_set(std::chrono::abs(ahead - server_ahead_));
  server_ahead_ = ahead;
  if (is_measured) inbox_.emplace_back(ServerClockSeen{ahead});
}

void Scenario::restart_controller() {
  controller_ = Controller();
  leads_ = true;
  truth_.restarted();
  watches_.clear();
  inbox_.clear();
  replies_.clear();
  wake_at_.reset();
  for (const auto kind : k8s::kAllKinds) {
    k8s::WatchTarget target{.kind = kind, .ns = {}, .name = {}};
    if (kind == k8s::Kind::ConfigMap) {
      if (policy_.own_namespace.empty()) continue;
      target = {.kind = kind, .ns = policy_.own_namespace, .name = std::string(kIncidentsName)};
    }
    target.kept = kKeptFields;
    watches_.push_back(std::make_unique<Watch>(std::move(target)));
  }
  if (!policy_.own_namespace.empty()) {
    watches_.push_back(std::make_unique<Watch>(k8s::WatchTarget{.kind = k8s::Kind::ConfigMap,
                                                                .ns = policy_.own_namespace,
                                                                .name = std::string(kStateName),
                                                                .kept = kKeptFields}));
  }
  send_policy();
  if (server_ahead_ != Millis::zero()) inbox_.emplace_back(ServerClockSeen{server_ahead_});
}

bool Scenario::poll(Watch& watch) {
  const auto output = watch.is_mute ? sim::WatchOutput{} : watch.open->poll(cluster.store(), now);
  std::vector<k8s::Delivery> out;
  if (!output.bytes.empty()) watch.spoke_at = now.mono;
  if (!output.ended && now.mono - watch.spoke_at >= watch.idle) {
    watch.open.reset();
    watch.session.stream_ended(fail(ErrorKind::TimedOut, "silence"), own_now(), kChance, out);
    pass(watch, std::move(out));
    return true;
  }
  const bool more = output.bytes.empty() || watch.session.feed(output.bytes, own_now(), out);
  if (output.ended || !more) {
    watch.open.reset();
    Result<k8s::Response> end = k8s::Response{200, {}, {}};
    if (output.cut) end = fail(ErrorKind::Unavailable, "the stream was cut");
    watch.session.stream_ended(end, own_now(), kChance, out);
  }
  const bool busy = !out.empty() || !watch.open;
  pass(watch, std::move(out));
  return busy;
}

void Scenario::pass(const Watch& watch, std::vector<k8s::Delivery> deliveries) {
  for (auto& delivery : deliveries) {
    if (!watch.is_of_earlier) {
      inbox_.emplace_back(std::move(delivery));
    } else if (auto earlier = read_earlier_state(delivery)) {
      inbox_.emplace_back(*std::move(earlier));
    }
  }
}

void Scenario::hold(k8s::Kind kind, bool held) {
  for (auto& watch : watches_) {
    if (watch->kind == kind) watch->held = held;
  }
}

void Scenario::mute(k8s::Kind kind, bool is_mute) {
  for (auto& watch : watches_) {
    if (watch->kind == kind) watch->is_mute = is_mute;
  }
}

bool Scenario::pump(Watch& watch) {
  if (watch.held) return false;
  if (watch.open) return poll(watch);
  if (watch.wait_until && *watch.wait_until > now.mono) return false;
  watch.wait_until.reset();
  const auto step = watch.session.next(own_now(), kChance);
  if (const auto* wait = std::get_if<k8s::WaitFor>(&step)) {
    watch.wait_until = now.mono + wait->duration;
    return false;
  }
  std::vector<k8s::Delivery> out;
  if (const auto* stream = std::get_if<k8s::OpenStream>(&step)) {
    auto answer = cluster.handle(stream->request, now);
    if (answer.watch) {
      watch.open = std::move(answer.watch);
      watch.spoke_at = now.mono;
      watch.idle = stream->request.timeouts.idle;
    } else {
      watch.session.stream_ended(judged(answer), own_now(), kChance, out);
    }
  } else if (const auto* send = std::get_if<k8s::SendList>(&step)) {
    watch.session.list_answered(judged(cluster.handle(send->request, now)), own_now(), kChance, out);
  } else {
    return false;
  }
  pass(watch, std::move(out));
  return true;
}

sim::Answer Scenario::send(const k8s::Request& request) {
  auto answer = cluster.handle(request, now);
  conduct_.take({.method = request.method,
                 .target = request.target,
                 .body = sim::Json::parse(request.body, nullptr, false),
                 .status = answer.status});
  return answer;
}

bool Scenario::is_calm() const {
  return leads_ && controller_.synced() && std::ranges::all_of(watches_, [](const auto& watch) {
           return watch->open && !watch->held && !watch->is_mute;
         });
}

void Scenario::check_invariants() {
  truth_.look(verdicts(), is_calm(), now);
  for (const auto& broken : conduct_.take_broken()) FAIL_CHECK(broken);
  for (const auto& broken : truth_.take_broken()) FAIL_CHECK(broken);
}

void Scenario::attempt(const eviction::EvictPod& action) {
  eviction::Exchange exchange(action);
  Millis delay{0};
  truth_.before(action, is_calm(), now);
  while (const auto request = exchange.next()) {
    const auto answer = send(*request);
    delay += answer.delay;
    exchange.take(judged(answer));
  }
  conduct_.eviction_ended(action.uid, truth_.after(action, now));
  replies_.push_back({now.mono + delay, {action, exchange.outcome()}});
}

void Scenario::read(const owners::ReadOwner& action) {
  owners::Lookup lookup(action);
  Millis delay{0};
  while (const auto request = lookup.next()) {
    const auto answer = send(*request);
    delay += answer.delay;
    lookup.answered(judged(answer));
  }
  replies_.push_back({now.mono + delay, {.action = action, .status = lookup.status(), .sight = lookup.sight()}});
}

void Scenario::execute(const Action& action) {
  if (const auto* pod = std::get_if<eviction::EvictPod>(&action)) return attempt(*pod);
  if (const auto* read_action = std::get_if<owners::ReadOwner>(&action)) return read(*read_action);
  auto request = request_for(action);
  // A replacement is made from the dead Job as it is read.
  if (const auto* made = std::get_if<job_retry::RecreateJob>(&action); made != nullptr && request) {
    request = job_retry::build_replacement(*made, send(*request).body);
  }
  if (!request) {
    replies_.push_back({now.mono, {action, std::unexpected(request.error())}});
    return;
  }
  const auto answer = send(*request);
  if (const auto* rule = std::get_if<taint::ApplyRule>(&action)) truth_.after(*rule, is_calm(), now);
  if (const auto* patch = std::get_if<job_retry::PatchJob>(&action)) truth_.after(*patch, is_calm(), now);
  Status status;
  if (auto response = judged(answer); !response) status = std::unexpected(response.error());
  if (const auto* patch = std::get_if<job_retry::PatchJob>(&action)) status = job_retry::judged(*patch, status);
  if (!status && is_done(action, status.error().kind)) status = {};
  Outcome outcome{.action = action, .status = std::move(status)};
  if (const auto* rule = std::get_if<taint::ApplyRule>(&action); rule != nullptr && outcome.status) {
    auto stored = taint::judge_answer(*rule, judged(answer));
    outcome.status = std::move(stored.status);
    outcome.stored_uid = std::move(stored.uid);
  }
  replies_.push_back({now.mono + answer.delay, std::move(outcome)});
}

void Scenario::doubt() {
  for (const auto& doubted : controller_.take_doubts()) {
    for (auto& watch : watches_) {
      if (watch->kind != doubted.kind) continue;
      std::vector<k8s::Delivery> out;
      watch->session.doubt(doubted.why, own_now(), out);
      if (watch->open) {
        watch->open.reset();
        watch->session.stream_ended(fail(ErrorKind::Unavailable, "ended for a fresh list"), own_now(), kChance, out);
      }
      pass(*watch, std::move(out));
    }
  }
}

void Scenario::settle() {
  for (int round = 0; round < kMaxTurns; ++round) {
    cluster.step(now);
    bool busy = false;
    for (auto& watch : watches_) busy = pump(*watch) || busy;
    for (const auto& reply : replies_) {
      if (reply.at > now.mono) continue;
      outcomes_.push_back(reply.outcome);
      inbox_.emplace_back(reply.outcome);
    }
    std::erase_if(replies_, [&](const Reply& reply) { return reply.at <= now.mono; });
    const bool due = wake_at_ && *wake_at_ <= now.mono;
    if (inbox_.empty() && !due) {
      if (!busy) return check_invariants();
      continue;
    }
    auto messages = std::exchange(inbox_, {});
    auto turn = oracle_.turn(controller_, messages, own_now());
    wake_at_ = turn.wake_at;
    doubt();
    if (!turn.actions.empty() && !(leads_ && controller_.synced())) {
      FAIL_CHECK("I5: it acts although another leads, or before it has read what there is");
    }
    for (const auto& action : turn.actions) execute(action);
  }
  FAIL("the controller and the cluster do not come to rest");
}

std::optional<MonoTime> Scenario::next_moment() const {
  std::optional<MonoTime> next;
  note(next, cluster.next_wake());
  note(next, wake_at_);
  for (const auto& reply : replies_) note(next, reply.at);
  for (const auto& watch : watches_) {
    if (watch->held) continue;
    note(next, watch->wait_until);
    if (watch->open && !watch->is_mute) note(next, watch->open->next_due());
    if (watch->open) note(next, watch->spoke_at + watch->idle);
  }
  return next;
}

void Scenario::run_for(Millis span) {
  const auto end = now.mono + span;
  settle();
  while (now.mono < end) {
    const auto wake = next_moment();
    const auto next = wake ? std::clamp(*wake, now.mono + Millis(1), end) : end;
    now = {next, now.wall + (next - now.mono)};
    settle();
  }
}

std::vector<std::string> Scenario::device_reasons(const std::string& device) const {
  std::vector<std::string> words;
  for (const auto& verdict : verdicts()) {
    if (verdict.device == device && verdict.subject.kind != "Pod") words.emplace_back(to_string(verdict.reason));
  }
  return words;
}

std::vector<std::string> Scenario::reasons(const std::string& pod) const {
  std::vector<std::string> words;
  for (const auto& verdict : verdicts()) {
    if (verdict.subject.name == pod) words.emplace_back(to_string(verdict.reason));
  }
  return words;
}

}  // namespace dhc::test
