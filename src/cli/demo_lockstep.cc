#include "cli/demo_lockstep.h"

#include <stdexcept>
#include <utility>
#include <variant>

#include "app/carry_out.h"
#include "app/verdict_changes.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/api_error.h"
#include "k8s-client/protocol/watch_session.h"
#include "simulator/api/answer.h"

namespace dhc::cli {

namespace {
// No jitter: the same seed tells the same story.
constexpr double kChance = 0.5;
constexpr int kMostRounds = 500;
}  // namespace

struct Lockstep::Watch {
  explicit Watch(const k8s::WatchTarget& target) : kind(target.kind), session(target) {}
  k8s::Kind kind;
  k8s::WatchSession session;
  std::optional<sim::WatchStream> open;
  std::optional<MonoTime> wait_until;
};

Lockstep::Lockstep(DemoPlace place, Policy policy) : place_(std::move(place)) {
  for (const auto kind : k8s::kAllKinds) {
    k8s::WatchTarget target{.kind = kind, .ns = {}, .name = {}};
    if (kind == k8s::Kind::ConfigMap) {
      target = {.kind = kind, .ns = policy.own_namespace, .name = std::string(kIncidentsName)};
    }
    target.kept = kKeptFields;
    watches_.push_back(std::make_unique<Watch>(std::move(target)));
  }
  inbox_.emplace_back(EarlierState{});  // no version before this one has led here
  inbox_.emplace_back(PolicyChanged{std::make_shared<const Policy>(std::move(policy))});
}

Lockstep::~Lockstep() = default;

void Lockstep::deliver(std::vector<k8s::Delivery> deliveries) {
  for (auto& delivery : deliveries) inbox_.emplace_back(std::move(delivery));
}

bool Lockstep::listen(Watch& watch, const Now& now) {
  sim::WatchOutput output;
  place_.with_cluster([&](sim::Cluster& cluster) { output = watch.open->poll(cluster.store(), now); });
  std::vector<k8s::Delivery> out;
  const bool goes_on = output.bytes.empty() || watch.session.feed(output.bytes, now, out);
  if (output.ended || !goes_on) {
    watch.open.reset();
    watch.session.stream_ended(k8s::Response{200, {}, {}}, now, kChance, out);
  }
  const bool busy = !out.empty() || !watch.open;
  deliver(std::move(out));
  return busy;
}

bool Lockstep::request(Watch& watch, const Now& now) {
  const auto step = watch.session.next(now, kChance);
  std::vector<k8s::Delivery> out;
  if (const auto* wait = std::get_if<k8s::WaitFor>(&step)) {
    watch.wait_until = now.mono + wait->duration;
    return false;
  }
  if (const auto* stream = std::get_if<k8s::OpenStream>(&step)) {
    // Not through the client: how far a stream has got would depend on threads, and the story with it.
    sim::Answer answer;
    place_.with_cluster([&](sim::Cluster& cluster) { answer = cluster.handle(stream->request, now); });
    if (answer.watch) {
      watch.open = std::move(answer.watch);
    } else {
      const auto response = sim::to_response(answer);
      Result<k8s::Response> end = response;
      if (answer.status >= 300) end = std::unexpected(k8s::error_from_response(response));
      watch.session.stream_ended(end, now, kChance, out);
    }
  } else if (const auto* list = std::get_if<k8s::SendList>(&step)) {
    watch.session.list_answered(place_.client.call(list->request, {}), now, kChance, out);
  } else {
    return false;
  }
  deliver(std::move(out));
  return true;
}

bool Lockstep::pump(Watch& watch, const Now& now) {
  if (watch.open) return listen(watch, now);
  if (watch.wait_until && *watch.wait_until > now.mono) return false;
  watch.wait_until.reset();
  return request(watch, now);
}

void Lockstep::doubt(const Now& now) {
  for (const auto& doubted : controller_.take_doubts()) {
    for (auto& watch : watches_) {
      if (watch->kind != doubted.kind) continue;
      std::vector<k8s::Delivery> out;
      watch->session.doubt(doubted.why, now, out);
      if (watch->open) {
        watch->open.reset();
        watch->session.stream_ended(fail(ErrorKind::Unavailable, "ended for a fresh list"), now, kChance, out);
      }
      deliver(std::move(out));
    }
  }
}

DemoMoment Lockstep::settle() {
  const Now now = place_.clock();
  DemoMoment moment;
  const auto before = verdicts();
  for (int round = 0; round < kMostRounds; ++round) {
    bool busy = false;
    for (auto& watch : watches_) busy = pump(*watch, now) || busy;
    const bool due = wake_at_ && *wake_at_ <= now.mono;
    if (inbox_.empty() && !due) {
      if (busy) continue;
      auto changes = changes_between(before, verdicts());
      moment.begun = std::move(changes.begun);
      moment.ended = std::move(changes.ended);
      return moment;
    }
    auto messages = std::exchange(inbox_, {});
    const auto turn = controller_.turn(messages, now);
    wake_at_ = turn.wake_at;
    doubt(now);
    for (const auto& action : turn.actions) {
      moment.outcomes.push_back(carry_out(action, place_.client, "demo", {}));
      inbox_.emplace_back(moment.outcomes.back());
    }
  }
  throw std::runtime_error("the controller and the simulated cluster come to no rest");
}

std::optional<MonoTime> Lockstep::next_moment() const {
  std::optional<MonoTime> next;
  const auto note = [&next](std::optional<MonoTime> when) {
    if (when && (!next || *when < *next)) next = when;
  };
  place_.with_cluster([&](sim::Cluster& cluster) { note(cluster.next_wake()); });
  note(wake_at_);
  for (const auto& watch : watches_) {
    note(watch->wait_until);
    if (watch->open) note(watch->open->next_due());
  }
  return next;
}

}  // namespace dhc::cli
