#include "bench/fleet_year/ours.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "app/controller.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/api_error.h"
#include "k8s-client/protocol/watch_session.h"
#include "reconcilers/eviction/build.h"
#include "reconcilers/eviction/exchange.h"
#include "reconcilers/hand_over/build.h"
#include "reconcilers/incident_state/build.h"
#include "reconcilers/job_retry/build.h"
#include "reconcilers/notice/build.h"
#include "reconcilers/owners/lookup.h"
#include "reconcilers/status/build.h"
#include "reconcilers/taint/build.h"
#include "simulator/api/target.h"

namespace dhc::year {
namespace {

constexpr double kChance = 0.5;
/// How far ahead a watch's word is dated: the controller looks again at least so often.
constexpr Millis kVouched = std::chrono::hours(1);

template <class... Cases>
struct OneOf : Cases... {
  using Cases::operator()...;
};

Result<k8s::Response> answered(const sim::Answer& answer) {
  const auto response = sim::to_response(answer);
  if (answer.status >= 300) return std::unexpected(k8s::error_from_response(response));
  return response;
}

/// One watch and the stream behind it.
struct Stream {
  explicit Stream(const k8s::WatchTarget& target) : kind(target.kind), name(target.name), session(target) {}
  k8s::Kind kind;
  std::string name;
  k8s::WatchSession session;
  std::optional<sim::Res> res = {};
  std::optional<sim::WatchStream> open = {};
  std::optional<MonoTime> wait_until = {};
  std::uint64_t seen = 0;
};

class Unchanged : public Ours {
 public:
  Unchanged(sim::Cluster& cluster, const Policy& policy) : cluster_(cluster) {
    for (const auto kind : k8s::kAllKinds) {
      k8s::WatchTarget target{.kind = kind, .ns = {}, .name = {}};
      if (kind == k8s::Kind::ConfigMap) {
        target.ns = policy.own_namespace;
        target.name = std::string(kIncidentsName);
      }
      target.kept = kKeptFields;
      streams_.push_back(std::make_unique<Stream>(target));
    }
    inbox_.emplace_back(EarlierState{});  // no version before this one has led here
    inbox_.emplace_back(PolicyChanged{std::make_shared<Policy>(policy)});
  }

  [[nodiscard]] const std::vector<Verdict>& verdicts() const override { return controller_.verdicts(); }

  void set_clock_ahead(Millis ahead) override {
    ahead_ = ahead;
    inbox_.emplace_back(ServerClockSeen{ahead});
  }

  [[nodiscard]] bool act() override {
    bool acted = false;
    for (auto& stream : streams_) acted = pump(*stream) || acted;
    // A word of each watch before it could seem old.
    const bool vouch = vouched_until_ <= cluster_.now().mono;
    if (vouch && controller_.synced()) {
      vouched_until_ = cluster_.now().mono + kVouched;
      for (const auto& stream : streams_) {
        inbox_.emplace_back(
            k8s::Delivery(k8s::Told{stream->kind, stream->name, k8s::WatchWord::Heard, vouched_until_}));
      }
    }
    const bool due = vouch || (wake_at_ && *wake_at_ <= cluster_.now().mono);
    if (inbox_.empty() && !due) return acted;
    auto messages = std::exchange(inbox_, {});
    if (!controller_.take(messages, own_now()) && !due) return acted;
    auto turn = controller_.plan(own_now());
    ++effort_.turns;
    effort_.asked += static_cast<std::int64_t>(controller_.stats().asked);
    wake_at_ = turn.wake_at;
    doubt();
    for (const auto& action : turn.actions) carry_out(action);
    return true;
  }

  [[nodiscard]] Effort effort() const override { return effort_; }

  [[nodiscard]] std::optional<MonoTime> next_due() const override {
    auto next = controller_.synced() ? std::optional(vouched_until_) : std::nullopt;
    const auto note = [&](std::optional<MonoTime> when) {
      if (when && (!next || *when < *next)) next = when;
    };
    note(wake_at_);
    for (const auto& stream : streams_) note(stream->wait_until);
    return next;
  }

 private:
  void deliver(std::vector<k8s::Delivery>& out) {
    for (auto& delivery : out) inbox_.emplace_back(std::move(delivery));
  }

  [[nodiscard]] bool pump(Stream& stream) {
    if (stream.open) return poll(stream);
    if (stream.wait_until && *stream.wait_until > cluster_.now().mono) return false;
    stream.wait_until.reset();
    const auto step = stream.session.next(own_now(), kChance);
    if (const auto* wait = std::get_if<k8s::WaitFor>(&step)) {
      stream.wait_until = cluster_.now().mono + wait->duration;
      return false;
    }
    std::vector<k8s::Delivery> out;
    if (const auto* open = std::get_if<k8s::OpenStream>(&step)) {
      const auto path = sim::parse_resource_path(sim::parse_target(open->request.target));
      if (path) stream.res = sim::find_res(path->group, path->resource);
      stream.seen = 0;
      auto answer = cluster_.handle(open->request, cluster_.now());
      if (answer.watch) {
        stream.open = std::move(answer.watch);
      } else {
        stream.session.stream_ended(answered(answer), own_now(), kChance, out);
      }
    } else if (const auto* list = std::get_if<k8s::SendList>(&step)) {
      stream.session.list_answered(answered(cluster_.handle(list->request, cluster_.now())), own_now(), kChance, out);
    } else {
      return false;
    }
    deliver(out);
    return true;
  }

  /// Only what has changed has something to say.
  [[nodiscard]] bool poll(Stream& stream) {
    if (stream.res && stream.seen > 0) {
      const auto& changes = cluster_.store().changes(*stream.res);
      if (changes.empty() || changes.back().rv <= stream.seen) return false;
    }
    stream.seen = cluster_.store().rv();
    const auto output = stream.open->poll(cluster_.store(), cluster_.now());
    std::vector<k8s::Delivery> out;
    const bool more = output.bytes.empty() || stream.session.feed(output.bytes, own_now(), out);
    if (output.ended || !more) {
      stream.open.reset();
      stream.session.stream_ended(k8s::Response{200, {}, {}}, own_now(), kChance, out);
    }
    const bool busy = !out.empty() || !stream.open;
    deliver(out);
    return busy;
  }

  void doubt() {
    for (const auto& doubted : controller_.take_doubts()) {
      for (auto& stream : streams_) {
        if (stream->kind != doubted.kind) continue;
        std::vector<k8s::Delivery> out;
        stream->session.doubt(doubted.why, own_now(), out);
        if (stream->open) {
          stream->open.reset();
          stream->session.stream_ended(fail(ErrorKind::Unavailable, "ended for a fresh list"), own_now(), kChance, out);
        }
        deliver(out);
      }
    }
  }

  Result<k8s::Response> send(const Result<k8s::Request>& request) {
    if (!request) return std::unexpected(request.error());
    return answered(cluster_.handle(*request, cluster_.now()));
  }

  Status done(const Result<k8s::Request>& request, std::optional<ErrorKind> fine = {}) {
    const auto answer = send(request);
    if (answer || answer.error().kind == fine) return {};
    return std::unexpected(answer.error());
  }

  void carry_out(const Action& action) {
    Outcome outcome{.action = action, .status = {}};
    std::visit(
        OneOf{
            [&](const eviction::EvictPod& evict) {
              eviction::Exchange exchange(evict);
              while (const auto request = exchange.next()) exchange.take(send(*request));
              outcome.status = exchange.outcome();
              outcome.reads = exchange.reads();
            },
            [&](const owners::ReadOwner& read) {
              owners::Lookup lookup(read);
              while (const auto request = lookup.next()) lookup.answered(send(*request));
              outcome.status = lookup.status();
              outcome.sight = lookup.sight();
            },
            [&](const job_retry::RecreateJob& made) {
              const auto read = send(job_retry::build_read(made));
              outcome.status = read ? done(job_retry::build_replacement(made, read->body), ErrorKind::Conflict)
                                    : Status(std::unexpected(read.error()));
            },
            [&](const job_retry::PatchJob& patch) {
              outcome.status = job_retry::judged(patch, done(job_retry::build_patch(patch)));
            },
            [&](const notice::ApplyCondition& one) { outcome.status = done(notice::build_condition(one)); },
            // Nobody here reads Events; the controller is told that they are there.
            [&](const notice::EmitEvent&) {},
            [&](const taint::ApplyRule& one) { outcome.status = done(taint::build_rule(one)); },
            [&](const taint::DeleteRule& one) { outcome.status = done(taint::build_delete(one), ErrorKind::NotFound); },
            [&](const taint::PatchNodeTaint& one) { outcome.status = done(taint::build_node_taint(one)); },
            [&](const hand_over::ApplyNodeConditions& one) { outcome.status = done(hand_over::build_conditions(one)); },
            // No policy here asks for objects of others' kinds.
            [&](const hand_over::MakeObject&) {}, [&](const hand_over::RemoveObject&) {},
            [&](const status::WriteStatus& one) { outcome.status = done(status::build_status(one, "fleet-year")); },
            [&](const incident_state::WriteState& one) { outcome.status = done(incident_state::build_state(one)); }},
        action);
    inbox_.emplace_back(std::move(outcome));
  }

  /// As the controller's own clock has it.
  [[nodiscard]] Now own_now() const { return {cluster_.now().mono, cluster_.now().wall - ahead_}; }

  sim::Cluster& cluster_;
  Millis ahead_{0};
  Controller controller_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Message> inbox_;
  std::optional<MonoTime> wake_at_;
  MonoTime vouched_until_;
  Effort effort_;
};

}  // namespace

Policy default_policy() {
  Policy policy;
  policy.mode_cap = Mode::Enforce;
  policy.own_namespace = "device-health-system";
  policy.events = false;
  policy.policies.push_back({.name = "gpus", .mode = Mode::Enforce});
  auto& rules = policy.policies.front();
  rules.match.drivers = {std::string(kDriver)};
  rules.taint = TaintRules{};
  rules.job_retry = JobRetryRules{};
  rules.evict = EvictRules{};
  return policy;
}

std::unique_ptr<Ours> make_ours(sim::Cluster& cluster, const Policy& policy) {
  return std::make_unique<Unchanged>(cluster, policy);
}

}  // namespace dhc::year
