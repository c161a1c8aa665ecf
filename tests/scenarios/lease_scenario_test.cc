#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "k8s-client/protocol/lease_machine.h"
#include "simulator/api/answer.h"
#include "tests/support/core/conduct.h"
#include "tests/support/core/lab.h"
#include "tests/support/core/schedules.h"

namespace dhc::test {

namespace {

using k8s::LeaseMachine;

const k8s::LeaseSubject kSubject{.ns = "sys", .name = "dhc", .manager = "dhc"};
const std::string kPath = "/apis/coordination.k8s.io/v1/namespaces/sys/leases/dhc";
constexpr Millis kNever = std::chrono::hours(1000);

/// From the first moment at which somebody led to the last at which a write of that time reached the server.
struct Reign {
  std::string who;
  MonoTime from;
  MonoTime to;
};

/// A candidate with a network in front of it that loses, delays and repeats nothing of its own accord.
struct Candidate {
  explicit Candidate(const std::string& name) : machine(kSubject, name) {}

  LeaseMachine machine;
  bool alive = true;
  bool informed = false;  ///< It has had an answer: it knows whether there was a Lease.
  bool leaving = false;
  bool gone = false;
  MonoTime frozen_until{};
  MonoTime cut_off_until{};
  /// A call under way.
  struct Flight {
    k8s::Request request;
    std::optional<MonoTime> arrives_at;
    MonoTime answered_at;
    Result<k8s::Response> answer = fail(ErrorKind::TimedOut, "no answer");
  };
  std::optional<Flight> flight;
  MonoTime wakes_at{};
  MonoTime writes_at{};
  MonoTime last_landing{};
  std::optional<std::size_t> reign;
};

/// Several candidates, a simulated API server, and everything that can go wrong, in virtual time.
class Election : public Lab {
 public:
  explicit Election(std::uint64_t seed) : Lab(seed), random_(seed), end_(now.mono + Seconds(150)) {
    cluster.add_namespace("sys");
    for (int i = 0; i < 3; ++i) join();
  }

  void run() {
    next_mischief_ = now.mono + upto(Seconds(8));
    while (now.mono < end_) {
      if (now.mono >= next_mischief_) {
        mischief();
        next_mischief_ = now.mono + upto(Seconds(12));
      }
      for (auto& candidate : candidates_) serve(*candidate);
      hand_out_hints();
      pass();
    }
  }

  [[nodiscard]] const std::vector<Reign>& reigns() const { return reigns_; }
  [[nodiscard]] const std::string& story() const { return story_; }
  [[nodiscard]] int landed() const { return landed_; }
  /// What the judge of invariants has found in the requests of all candidates.
  [[nodiscard]] std::vector<std::string> broken() { return conduct_.take_broken(); }

 private:
  Millis upto(Millis most) { return Millis(std::uniform_int_distribution<Millis::rep>(0, most.count())(random_)); }
  bool happens(int percent) { return std::uniform_int_distribution<int>(0, 99)(random_) < percent; }

  void join() { candidates_.push_back(std::make_unique<Candidate>(fmt::format("c{}", ++names_))); }

  void note(std::string_view what) { story_ += fmt::format("{} {}\n", now.mono.time_since_epoch().count(), what); }

  /// Virtual time goes to the next moment at which anything happens.
  void pass() {
    MonoTime next = std::min(end_, next_mischief_);
    for (const auto& c : candidates_) {
      if (!c->alive) continue;
      auto at = c->flight ? c->flight->arrives_at.value_or(c->flight->answered_at) : c->wakes_at;
      at = std::min(at, c->writes_at);
      if (at <= now.mono || c->frozen_until > at) at = std::max(at, c->frozen_until);
      next = std::min(next, std::max(at, now.mono + Millis(1)));
    }
    for (const auto& hint : hints_) next = std::min(next, std::max(hint.at, now.mono + Millis(1)));
    const auto by = std::max(next - now.mono, Millis(1));
    now = {now.mono + by, now.wall + by};
    cluster.step(now);
  }

  void serve(Candidate& c) {
    // What is on its way arrives, whatever its sender does by then.
    if (c.flight && c.flight->arrives_at && now.mono >= *c.flight->arrives_at) {
      c.flight->arrives_at.reset();
      const auto before = record();
      const auto answer = cluster.handle(c.flight->request, now);
      conduct_.take({.method = c.flight->request.method,
                     .target = c.flight->request.target,
                     .body = sim::Json::parse(c.flight->request.body, nullptr, false),
                     .status = answer.status});
      if (c.cut_off_until <= now.mono) c.flight->answer = answered(answer);
      if (record() != before) send_hints();
    }
    if (!c.alive || now.mono < c.frozen_until) return;
    for (int i = 0; i < 4; ++i) {
      if (c.flight) {
        if (now.mono < c.flight->answered_at) break;
        const auto answer = std::move(c.flight->answer);
        c.flight.reset();
        c.informed = c.informed || answer || answer.error().kind == ErrorKind::NotFound;
        c.machine.answered(answer, now, 0.3);
      }
      rule(c);
      const auto step = c.machine.next(now);
      rule(c);
      if (const auto* wait = std::get_if<k8s::LeaseWait>(&step)) {
        c.wakes_at = wait->until;
        break;
      }
      if (std::holds_alternative<k8s::LeaseOver>(step)) {
        c.alive = false;
        note(c.machine.identity() + " is gone");
        break;
      }
      send(c, std::get<k8s::LeaseCall>(step).request);
    }
    write(c);
    if (c.leaving && !c.gone && now.mono >= c.last_landing && !c.flight) {
      c.gone = true;
      c.machine.release();
      c.wakes_at = now.mono;
    }
  }

  static Result<k8s::Response> answered(const sim::Answer& answer) {
    auto response = sim::to_response(answer);
    if (response.status < 300) return response;
    if (response.status == 404) return fail(ErrorKind::NotFound, "404");
    if (response.status == 409) return fail(ErrorKind::Conflict, "409");
    return fail(response.status == 422 ? ErrorKind::Conflict : ErrorKind::Unavailable, answer.body);
  }

  void send(Candidate& c, const k8s::Request& request) {
    Candidate::Flight flight{.request = request, .arrives_at = {}, .answered_at = now.mono + *request.timeouts.total};
    const bool cut_off = c.cut_off_until > now.mono;
    if (!cut_off || happens(20)) {
      const auto there = happens(5) ? upto(Seconds(6)) : upto(Millis(30));
      flight.arrives_at = now.mono + there;
      if (!cut_off && there < *request.timeouts.total) {
        flight.answered_at = std::min(flight.answered_at, now.mono + there + upto(Millis(30)));
      }
    }
    c.flight = std::move(flight);
  }

  /// Keeps the account of who leads.
  void rule(Candidate& c) {
    const auto term = c.machine.term(now.mono);
    if (!term) {
      if (c.reign) {
        auto& to = reigns_.at(*c.reign).to;
        to = std::max(std::min(to, now.mono), c.last_landing);
      }
      c.reign.reset();
      c.writes_at = now.mono + kNever;
      return;
    }
    if (!c.reign) {
      c.reign = reigns_.size();
      reigns_.push_back({c.machine.identity(), now.mono, term->begin_until});
      c.writes_at = now.mono;
      note(c.machine.identity() + " leads");
    }
    reigns_.at(*c.reign).to = std::max(term->begin_until, c.last_landing);
  }

  /// The controller's own writes: begun within the term, over when the fence's limit says so, or earlier.
  void write(Candidate& c) {
    const auto term = c.machine.term(now.mono);
    if (!term || !c.reign || c.leaving || now.mono < c.writes_at) return;
    const auto lands = std::min(now.mono + (happens(10) ? upto(Seconds(10)) : upto(Millis(50))), term->end_by);
    c.writes_at = now.mono + Millis(200) + upto(Millis(900));
    if (c.cut_off_until > now.mono) return;
    ++landed_;
    c.last_landing = std::max(c.last_landing, lands);
    reigns_.at(*c.reign).to = std::max(reigns_.at(*c.reign).to, lands);
  }

  [[nodiscard]] sim::Json record() const {
    const auto stored = cluster.get(sim::Res::Leases, "sys", "dhc");
    return stored ? *stored : sim::Json();
  }

  struct Hint {
    MonoTime at;
    std::size_t to;
    k8s::Delivery delivery;
  };

  void send_hints() {
    const auto stored = record();
    k8s::Delivery delivery = k8s::Remove{.kind = k8s::Kind::Lease, .ns = "sys", .name = "dhc", .uid = {}};
    if (!stored.is_null()) {
      auto lease = k8s::parse_lease({.status = 200, .headers = {}, .body = stored.dump()});
      REQUIRE(lease);
      delivery = k8s::Upsert{k8s::Object(std::move(*lease))};
    }
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (happens(20) || !candidates_[i]->alive) continue;
      hints_.push_back({now.mono + (happens(10) ? upto(Seconds(3)) : upto(Millis(40))), i, delivery});
    }
  }

  void hand_out_hints() {
    for (std::size_t i = 0; i < hints_.size();) {
      auto& c = *candidates_[hints_[i].to];
      const bool due = now.mono >= hints_[i].at && now.mono >= c.frozen_until && !c.flight;
      if (c.alive && !due) {
        ++i;
        continue;
      }
      if (c.alive && c.cut_off_until <= now.mono) {
        c.machine.observed(hints_[i].delivery, now);
        c.wakes_at = now.mono;
      }
      hints_.erase(hints_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void mischief() {
    auto& c =
        *candidates_[static_cast<std::size_t>(upto(Millis(static_cast<Millis::rep>(candidates_.size()) - 1)).count())];
    const auto who = c.machine.identity();
    const auto before = record();
    switch (upto(Millis(9)).count()) {
      case 0:
        c.alive = false;
        note("kill " + who);
        break;
      case 1:
        c.frozen_until = now.mono + Seconds(1) + upto(Seconds(24));
        note("freeze " + who);
        break;
      case 2:
        c.cut_off_until = now.mono + Seconds(1) + upto(Seconds(24));
        note("cut off " + who);
        break;
      case 3:
        for (auto& other : candidates_) other->cut_off_until = now.mono + upto(Seconds(15));
        note("outage");
        break;
      case 4:
        if (!std::ranges::all_of(candidates_, [](const auto& other) { return other->informed; })) break;
        cluster.kubectl_delete(sim::Res::Leases, "sys", "dhc");
        deleted_at_ = now.mono;
        note("delete");
        break;
      case 9:
        if (!std::ranges::all_of(candidates_, [](const auto& other) { return other->informed; })) break;
        // A bare manifest over it.
        cluster.kubectl_patch(sim::Res::Leases, "sys", "dhc", {{"spec", nullptr}});
        deleted_at_ = now.mono;
        note("bare");
        break;
      case 5:
        cluster.kubectl_patch(sim::Res::Leases, "sys", "dhc", {{"spec", {{"holderIdentity", "thief"}}}});
        note("steal");
        break;
      case 6:
        cluster.kubectl_patch(sim::Res::Leases, "sys", "dhc", {{"spec", {{"holderIdentity", ""}}}});
        note("empty");
        break;
      case 7:
        cluster.kubectl_patch(sim::Res::Leases, "sys", "dhc", {{"metadata", {{"labels", {{"seen", who}}}}}});
        note("label");
        break;
      default:
        c.leaving = true;
        note("leave " + who);
        break;
    }
    if (record() != before) send_hints();
    // A newcomer cannot know of a Lease that was deleted just before it came.
    const auto standing = std::ranges::count_if(candidates_, [](const auto& other) { return other->alive; });
    if (standing < 3 && (!deleted_at_ || now.mono - *deleted_at_ > Seconds(16))) join();
  }

  std::mt19937_64 random_;
  MonoTime end_;
  MonoTime next_mischief_{};
  std::optional<MonoTime> deleted_at_;
  int names_ = 0;
  int landed_ = 0;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::deque<Hint> hints_;
  std::vector<Reign> reigns_;
  std::string story_;
  Conduct conduct_;
};

}  // namespace

TEST_CASE("In any of many random schedules of faults nobody writes while another may") {
  const auto schedules = schedule_number("DHC_LEASE_SCHEDULES", 1000);
  int landed = 0;
  std::size_t reigns = 0;
  for (int seed = 1; seed <= schedules; ++seed) {
    Election election(static_cast<std::uint64_t>(seed));
    election.run();
    landed += election.landed();
    reigns += election.reigns().size();
    for (const auto& broken : election.broken()) {
      CAPTURE(seed);
      FAIL_CHECK(broken);
    }
    const auto& all = election.reigns();
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        const bool apart = all[i].who == all[j].who || all[i].to <= all[j].from || all[j].to <= all[i].from;
        if (apart) continue;
        CAPTURE(seed);
        CAPTURE(election.story());
        FAIL_CHECK(fmt::format("{} led {}..{} and {} led {}..{}", all[i].who, all[i].from.time_since_epoch().count(),
                               all[i].to.time_since_epoch().count(), all[j].who, all[j].from.time_since_epoch().count(),
                               all[j].to.time_since_epoch().count()));
        return;
      }
    }
  }
  // Safety alone would be easy: they must have led and written.
  CHECK(reigns > 3 * static_cast<std::size_t>(schedules));
  CHECK(landed > 50 * schedules);
}

TEST_CASE("With nothing wrong the first to come leads for good, and a second process changes nothing") {
  Lab lab;
  lab.cluster.add_namespace("sys");
  LeaseMachine first(kSubject, "first");
  LeaseMachine second(kSubject, "second");
  const auto turn = [&](LeaseMachine& machine) {
    const auto step = machine.next(lab.now);
    if (const auto* call = std::get_if<k8s::LeaseCall>(&step)) {
      const auto answer = sim::to_response(lab.cluster.handle(call->request, lab.now));
      machine.answered(answer.status < 300 ? Result<k8s::Response>(answer) : fail(ErrorKind::NotFound, "none"), lab.now,
                       0.5);
    }
  };
  bool second_led = false;
  for (int i = 0; i < 6000; ++i) {
    turn(first);
    turn(second);
    second_led = second_led || second.term(lab.now.mono);
    if (i > 400) REQUIRE(first.term(lab.now.mono));
    lab.run_for(Millis(10));
  }
  CHECK_FALSE(second_led);
  const auto lease = lab.cluster.get(sim::Res::Leases, "sys", "dhc");
  CHECK((*lease)["spec"]["holderIdentity"] == "first");
  CHECK((*lease)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "dhc");
}

}  // namespace dhc::test
