#include "k8s-client/protocol/lease_machine.h"

#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace dhc::k8s {

namespace {

const LeaseSubject kSubject{.ns = "sys", .name = "dhc", .manager = "dhc"};
constexpr Millis kTick{1};

/// A Lease as the server has it.
struct Record {
  std::string holder = "other";
  std::int64_t duration = 15;
  std::string renewed = "2026-11-20T12:00:00.000000Z";
  std::string version = "10";
  std::string uid = "u";
  std::int64_t transitions = 4;
  std::string acquired = "2026-11-20T11:00:00.000000Z";
};

std::string text_of(const Record& record) {
  nlohmann::json spec = {{"leaseDurationSeconds", record.duration}, {"leaseTransitions", record.transitions}};
  if (!record.holder.empty()) spec["holderIdentity"] = record.holder;
  if (!record.renewed.empty()) spec["renewTime"] = record.renewed;
  if (!record.acquired.empty()) spec["acquireTime"] = record.acquired;
  return nlohmann::json{
      {"kind", "Lease"},
      {"metadata", {{"namespace", "sys"}, {"name", "dhc"}, {"uid", record.uid}, {"resourceVersion", record.version}}},
      {"spec", spec}}
      .dump();
}

Lease lease_of(const Record& record) {
  Lease lease{.meta = {}, .holder = record.holder, .duration_seconds = record.duration};
  lease.meta.ns = "sys";
  lease.meta.name = "dhc";
  lease.meta.uid = record.uid;
  lease.meta.resource_version = record.version;
  lease.renew_time = record.renewed;
  lease.acquire_time = record.acquired;
  lease.transitions = record.transitions;
  return lease;
}

/// One candidate and a clock that only the test turns.
struct Candidate {
  LeaseMachine machine{kSubject, "me"};
  Now now{.mono = MonoTime(Seconds(1000)), .wall = *parse_rfc3339("2026-11-20T12:00:01.5Z")};
  int version = 100;

  void pass(Millis time) {
    now.mono += time;
    now.wall += time;
  }

  /// What it asks for: `get`, `create`, `hold` (us), `give` (nobody), `wait 1500`, `over`.
  std::string step() {
    const auto next = machine.next(now);
    if (const auto* wait = std::get_if<LeaseWait>(&next))
      return fmt::format("wait {}", (wait->until - now.mono).count());
    if (std::holds_alternative<LeaseOver>(next)) return "over";
    sent = std::get<LeaseCall>(next).request;
    if (sent.method == Method::Get) return "get";
    const auto body = nlohmann::json::parse(sent.body);
    if (!body.contains("spec")) return "create";
    return body["spec"]["holderIdentity"] == "me" ? "hold" : "give";
  }

  void answer(const Record& record) {
    machine.answered(Response{.status = 200, .headers = {}, .body = text_of(record)}, now, 0.5);
  }
  void refuse(ErrorKind kind, std::optional<Millis> retry_after = {}) {
    machine.answered(std::unexpected(Error{kind, "the server's words", retry_after}), now, 0.0);
  }

  /// The write is accepted.
  void accept() {
    const auto body = nlohmann::json::parse(sent.body);
    const auto& spec = body["spec"];
    answer({.holder = spec["holderIdentity"],
            .duration = spec["leaseDurationSeconds"],
            .renewed = spec["renewTime"],
            .version = fmt::format("{}", ++version),
            .uid = body["metadata"]["uid"],
            .transitions = spec["leaseTransitions"],
            .acquired = spec["acquireTime"]});
  }

  /// From nothing to leading, on a Lease that was given up.
  void win() {
    REQUIRE(step() == "get");
    answer({.holder = "", .duration = 1});
    REQUIRE(step() == "hold");
    accept();
    REQUIRE(leads());
  }

  [[nodiscard]] bool leads() const { return machine.term(now.mono).has_value(); }
  /// What the last write makes of the Lease.
  [[nodiscard]] nlohmann::json spec() const { return nlohmann::json::parse(sent.body)["spec"]; }
  void see(const Record& record) { machine.observed(Upsert{Object(lease_of(record))}, now); }

  Request sent;
};

}  // namespace

TEST_CASE("A Lease that was given up is taken at once") {
  Candidate c;
  c.win();
  CHECK(c.machine.holder() == "me");
}

TEST_CASE("A foreign holder is waited for 15 s since its record was seen to change, to the millisecond") {
  Candidate c;
  CHECK(c.step() == "get");
  c.pass(Seconds(3));
  c.answer({});
  CHECK(c.step() == "wait 15000");
  c.pass(Seconds(15) - kTick);
  CHECK(c.step() == "wait 1");
  c.pass(kTick);
  CHECK(c.step() == "hold");
  CHECK_FALSE(c.leads());
  c.accept();
  CHECK(c.leads());
}

TEST_CASE("A renewal seen by the watch begins the wait anew, a change of anything else does not") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({});
  c.pass(Seconds(10));
  c.see({.version = "11"});
  CHECK(c.step() == "wait 5000");
  c.see({.renewed = "2026-11-20T12:00:10.000000Z", .version = "12"});
  CHECK(c.step() == "wait 15000");
}

TEST_CASE("A holder whose clock is years off is judged like any other") {
  for (const auto* renewed : {"1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"}) {
    Candidate c;
    CHECK(c.step() == "get");
    c.answer({.renewed = renewed});
    CHECK(c.step() == "wait 15000");
  }
}

TEST_CASE("A holder that asks for longer is given it, one that asks for less gets 15 s") {
  for (const auto& [asked, given] : {std::pair{40, 40}, std::pair{1, 15}, std::pair{0, 15}}) {
    Candidate c;
    CHECK(c.step() == "get");
    c.answer({.duration = asked});
    CHECK(c.step() == fmt::format("wait {}000", given));
  }
}

TEST_CASE("A release is taken at once, an empty holder that nobody released is not trusted") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({});
  c.pass(Seconds(1));
  c.see({.holder = "", .version = "11"});
  CHECK(c.step() == "wait 15000");
  c.see({.holder = "", .duration = 1, .renewed = "2026-11-20T12:00:03.000000Z", .version = "12"});
  CHECK(c.step() == "hold");
}

TEST_CASE("Without a Lease one is made, and taken after a renewal's time, in case it stood there before") {
  Candidate c;
  CHECK(c.step() == "get");
  c.refuse(ErrorKind::NotFound);
  CHECK(c.step() == "create");
  CHECK(c.sent.target.find("fieldManager=dhc-create") != std::string::npos);
  CHECK(c.sent.target.find("force") == std::string::npos);
  c.answer({.holder = "", .duration = 0, .renewed = "", .version = "1", .transitions = 0});
  CHECK(c.step() == "wait 3000");
  c.pass(Seconds(3) - kTick);
  CHECK(c.step() == "wait 1");
  c.pass(kTick);
  CHECK(c.step() == "hold");
  CHECK(nlohmann::json::parse(c.sent.body)["spec"]["leaseTransitions"] == 0);
}

TEST_CASE("A Lease deleted under another holder leaves every holder its time") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({});
  c.pass(Seconds(2));
  c.machine.observed(Remove{.kind = Kind::Lease, .ns = "sys", .name = "dhc", .uid = "u"}, c.now);
  CHECK(c.step() == "get");
  c.refuse(ErrorKind::NotFound);
  CHECK(c.step() == "create");
  c.answer({.holder = "", .duration = 0, .renewed = "", .version = "20", .uid = "u2"});
  CHECK(c.step() == "wait 15000");
}

TEST_CASE("What is written: MicroTime with six digits, the version that was seen, our name, one transition more") {
  Candidate c;
  c.win();
  const auto body = nlohmann::json::parse(c.sent.body);
  CHECK(c.sent.method == Method::Patch);
  CHECK(c.sent.target == "/apis/coordination.k8s.io/v1/namespaces/sys/leases/dhc?fieldManager=dhc&force=true");
  CHECK(body["metadata"]["resourceVersion"] == "10");
  CHECK(body["metadata"]["uid"] == "u");
  CHECK(body["spec"]["holderIdentity"] == "me");
  CHECK(body["spec"]["leaseDurationSeconds"] == 15);
  CHECK(body["spec"]["renewTime"] == "2026-11-20T12:00:01.500000Z");
  CHECK(body["spec"]["acquireTime"] == "2026-11-20T12:00:01.500000Z");
  CHECK(body["spec"]["leaseTransitions"] == 5);
}

TEST_CASE("It is renewed every 2 s, keeping the transitions and naming the version just written") {
  Candidate c;
  c.win();
  CHECK(c.step() == "wait 2000");
  c.pass(Seconds(2));
  CHECK(c.step() == "hold");
  const auto body = nlohmann::json::parse(c.sent.body);
  CHECK(body["metadata"]["resourceVersion"] == "101");
  CHECK(body["spec"]["leaseTransitions"] == 5);
  CHECK(body["spec"]["renewTime"] == "2026-11-20T12:00:03.500000Z");
}

TEST_CASE("A term counts from when the renewal was sent: 10 s to begin, 14 s to end, to the millisecond") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({.holder = "", .duration = 1});
  CHECK(c.step() == "hold");
  const auto sent = c.now.mono;
  c.pass(Seconds(3));
  c.accept();
  REQUIRE(c.leads());
  CHECK(c.machine.term(c.now.mono)->begin_until == sent + Seconds(10));
  CHECK(c.machine.term(c.now.mono)->end_by == sent + Seconds(14));
  CHECK(c.machine.term(sent + Seconds(10) - kTick));
  CHECK_FALSE(c.machine.term(sent + Seconds(10)));
}

TEST_CASE("A renewal that fails is tried again until the deadline, then nothing leads before the last call is over") {
  Candidate c;
  c.win();
  const auto renewed = c.now.mono;
  c.pass(Seconds(2));
  while (c.leads()) {
    const auto step = c.step();
    if (step == "hold") {
      CHECK(*c.sent.timeouts.total <= renewed + Seconds(10) - c.now.mono);
      CHECK(*c.sent.timeouts.total > Millis(0));
      c.refuse(ErrorKind::Unavailable);
    } else {
      c.pass(kTick);
    }
  }
  CHECK(c.now.mono - renewed == Seconds(10));
  CHECK(c.machine.problem()->message == "cannot patch Lease sys/dhc: the server's words");
  while (c.step() != "hold") c.pass(kTick);
  c.accept();  // the server is back: it is still ours
  CHECK_FALSE(c.leads());
  while (!c.leads()) {
    if (c.step() == "hold") c.accept();
    c.pass(kTick);
  }
  CHECK(c.now.mono - renewed == Seconds(14));
  CHECK_FALSE(c.machine.problem());
}

TEST_CASE("Of a write whose answer is lost the next one learns, and goes on") {
  Candidate c;
  c.win();
  c.pass(Seconds(2));
  CHECK(c.step() == "hold");
  const auto written = nlohmann::json::parse(c.sent.body)["spec"]["renewTime"].get<std::string>();
  c.pass(Seconds(4));
  c.refuse(ErrorKind::TimedOut);
  CHECK(c.step() == "wait 2000");
  c.pass(Seconds(2));
  CHECK(c.step() == "hold");
  c.refuse(ErrorKind::Conflict);
  CHECK(c.step() == "get");
  c.answer({.holder = "me", .renewed = written, .version = "102"});
  CHECK(c.leads());
  CHECK(c.step() == "wait 250");
  c.pass(Millis(250));
  CHECK(c.step() == "hold");
  c.accept();
  CHECK(c.leads());
}

TEST_CASE("A stolen Lease ends the term as soon as it is seen, and the thief gets its time") {
  for (const bool by_watch : {false, true}) {
    Candidate c;
    c.win();
    if (by_watch) {
      c.pass(Millis(500));
      c.see({.holder = "thief", .version = "200"});
    } else {
      c.pass(Seconds(2));
      CHECK(c.step() == "hold");
      c.refuse(ErrorKind::Conflict);
    }
    CHECK(c.leads());
    CHECK(c.step() == "get");
    c.answer({.holder = "thief", .version = "200"});
    CHECK_FALSE(c.leads());
    CHECK(c.machine.holder() == "thief");
    CHECK(c.step() == "wait 15000");
    c.pass(Seconds(15));
    CHECK(c.step() == "hold");
    c.accept();
    CHECK(c.leads());
  }
}

TEST_CASE("A Lease deleted under us ends the term, and is taken again like any other's") {
  Candidate c;
  c.win();
  const auto renewed = c.now.mono;
  c.pass(Seconds(1));
  c.machine.observed(Remove{.kind = Kind::Lease, .ns = "sys", .name = "dhc", .uid = "u"}, c.now);
  CHECK(c.step() == "get");
  c.refuse(ErrorKind::NotFound);
  CHECK_FALSE(c.leads());
  CHECK(c.step() == "create");
  c.answer({.holder = "", .duration = 0, .renewed = "", .version = "1", .uid = "u2"});
  while (!c.leads()) {
    if (c.step() == "hold") {
      c.accept();
    } else {
      c.pass(kTick);
    }
  }
  CHECK(c.now.mono - renewed == Seconds(16));
}

TEST_CASE("What the watch says late about others is looked up once and changes nothing") {
  Candidate c;
  c.win();
  c.see({.holder = "other", .version = "7"});
  c.see({.holder = "", .duration = 1, .version = "10"});
  CHECK(c.step() == "wait 500");
  c.pass(Millis(500));
  CHECK(c.step() == "get");
  c.answer({.holder = "me", .renewed = "2026-11-20T12:00:01.500000Z", .version = "101"});
  CHECK(c.leads());
  c.see({.holder = "me", .renewed = "2026-11-20T12:00:01.500000Z", .version = "101"});
  c.see({.holder = "other", .version = "8"});
  CHECK(c.step() == "wait 500");
}

TEST_CASE("A refusal for want of a verb names it, and is tried again") {
  Candidate c;
  CHECK(c.step() == "get");
  c.refuse(ErrorKind::Forbidden);
  CHECK(c.machine.problem()->kind == ErrorKind::Forbidden);
  CHECK(c.machine.problem()->message == "cannot get Lease sys/dhc: the server's words");
  CHECK(c.step() == "wait 2000");
  c.pass(Seconds(2));
  CHECK(c.step() == "get");
  c.refuse(ErrorKind::NotFound);
  CHECK(c.step() == "create");
  c.refuse(ErrorKind::Forbidden);
  CHECK(c.machine.problem()->message == "cannot create or patch Lease sys/dhc: the server's words");
}

TEST_CASE("One that slept through its time neither leads nor takes what another has by then") {
  Candidate c;
  c.win();
  c.pass(Seconds(20));
  CHECK_FALSE(c.leads());
  CHECK(c.step() == "hold");  // of the version it knew
  c.refuse(ErrorKind::Conflict);
  CHECK(c.step() == "get");
  c.answer({.holder = "other", .renewed = "2026-11-20T12:00:20.000000Z", .version = "300"});
  CHECK(c.step() == "wait 15000");
}

TEST_CASE("A release ends the term at once, empties the holder and keeps the transitions") {
  Candidate c;
  c.win();
  c.machine.release();
  CHECK_FALSE(c.leads());
  CHECK(c.step() == "give");
  const auto body = nlohmann::json::parse(c.sent.body);
  CHECK(body["spec"]["holderIdentity"] == "");
  CHECK(body["spec"]["leaseDurationSeconds"] == 1);
  CHECK(body["spec"]["leaseTransitions"] == 5);
  CHECK(body["metadata"]["resourceVersion"] == "101");
  c.accept();
  CHECK(c.step() == "over");
}

TEST_CASE("A release that meets another version looks and tries again, one that finds another holder is over") {
  Candidate c;
  c.win();
  c.machine.release();
  CHECK(c.step() == "give");
  c.refuse(ErrorKind::Conflict);
  CHECK(c.step() == "get");
  c.answer({.holder = "me", .version = "150"});
  CHECK(c.step() == "give");
  c.refuse(ErrorKind::Unavailable);
  CHECK(c.step() == "wait 250");
  c.pass(Millis(250));
  CHECK(c.step() == "get");
  c.answer({.holder = "thief", .version = "151"});
  CHECK(c.step() == "over");
}

TEST_CASE("A standby that is asked to release has nothing to give, unless a lost answer may have made it the holder") {
  Candidate idle;
  CHECK(idle.step() == "get");
  idle.answer({});
  idle.machine.release();
  CHECK(idle.step() == "over");

  Candidate lost;
  CHECK(lost.step() == "get");
  lost.answer({.holder = "", .duration = 1});
  CHECK(lost.step() == "hold");
  lost.refuse(ErrorKind::TimedOut);
  lost.machine.release();
  CHECK(lost.step() == "get");
  lost.answer({.holder = "me", .version = "11"});
  CHECK(lost.step() == "give");
}

TEST_CASE("An answer that is no Lease is a failure, not a victory") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({.holder = "", .duration = 1});
  CHECK(c.step() == "hold");
  c.machine.answered(Response{.status = 200, .headers = {}, .body = "<html>"}, c.now, 0.5);
  CHECK_FALSE(c.leads());
  CHECK(c.machine.problem()->kind == ErrorKind::Malformed);
}

TEST_CASE("A record emptied under a holder that we knew leaves that holder its time, whatever is changed after that") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({});
  c.pass(Seconds(1));
  c.see({.holder = "", .duration = 0, .renewed = "", .version = "11", .transitions = 0, .acquired = ""});
  CHECK(c.step() == "wait 15000");
  c.pass(Seconds(1));
  c.see({.holder = "", .duration = 0, .renewed = "", .version = "12", .transitions = 7, .acquired = ""});
  CHECK(c.step() == "wait 15000");
}

TEST_CASE(
    "A record that was blank, held and emptied while we did not look leaves the holder that we never saw its time") {
  Candidate c;
  CHECK(c.step() == "get");
  const Record blank{.holder = "", .duration = 0, .renewed = "", .version = "1", .transitions = 0, .acquired = ""};
  c.answer(blank);
  c.pass(Seconds(3));
  CHECK(c.step() == "hold");
  c.refuse(ErrorKind::Conflict);
  CHECK(c.step() == "get");
  auto emptied = blank;
  emptied.version = "3";
  c.answer(emptied);
  CHECK(c.step() == "wait 15000");
}

TEST_CASE("Only a duration of one second says that the holder itself has given up") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({});
  c.see({.holder = "", .duration = 0, .version = "11"});
  CHECK(c.step() == "wait 15000");
}

TEST_CASE("The number of transitions begins anew before it no longer fits, and is never sent outside its range") {
  for (const auto& [said, sent] : {std::pair<std::int64_t, std::int64_t>{2147483646, 2147483647},
                                   {2147483647, 0},
                                   {9223372036854775807, 0},
                                   {-5, 1}}) {
    Candidate c;
    CHECK(c.step() == "get");
    c.answer({.holder = "", .duration = 1, .transitions = said});
    CHECK(c.step() == "hold");
    CHECK(c.spec()["leaseTransitions"] == sent);
  }
}

TEST_CASE(
    "An acquireTime that somebody took away is named anew, and without one the Lease is given back all the same") {
  Candidate c;
  c.win();
  c.pass(Seconds(2));
  CHECK(c.step() == "hold");
  c.refuse(ErrorKind::Conflict);
  CHECK(c.step() == "get");
  const Record robbed{.holder = "me", .renewed = "2026-11-20T12:00:01.500000Z", .version = "150", .acquired = ""};
  c.answer(robbed);
  c.pass(Millis(250));
  CHECK(c.step() == "hold");
  CHECK(c.spec()["acquireTime"] == c.spec()["renewTime"]);
  c.answer(robbed);
  CHECK(c.leads());
  c.machine.release();
  CHECK(c.step() == "give");
  CHECK_FALSE(c.spec().contains("acquireTime"));
}

TEST_CASE("A holder with a name that nobody should have is a holder like any other") {
  for (const auto& name : {std::string("x\n"), std::string("\t"), std::string(3000, 'x')}) {
    Candidate c;
    CHECK(c.step() == "get");
    c.answer({.holder = name});
    CHECK_FALSE(c.machine.problem());
    CHECK(c.machine.holder().find_first_of("\n\t") == std::string::npos);
    CHECK(c.machine.holder().size() < 300);
    CHECK_FALSE(c.machine.holder().empty());
    CHECK(c.step() == "wait 15000");
    c.pass(Seconds(15));
    CHECK(c.step() == "hold");
    c.accept();
    CHECK(c.leads());
  }
}

TEST_CASE("A Retry-After never keeps a candidate quiet beyond a holder's time, nor a holder beyond its own") {
  Candidate standby;
  CHECK(standby.step() == "get");
  standby.refuse(ErrorKind::Unavailable, Seconds(300));
  CHECK(standby.step() == "wait 15000");

  Candidate holder;
  holder.win();
  holder.pass(Seconds(2));
  CHECK(holder.step() == "hold");
  holder.refuse(ErrorKind::TooManyRequests, Seconds(300));
  CHECK(holder.step() == "wait 6000");
  holder.pass(Seconds(6));
  CHECK(holder.step() == "hold");
  CHECK(holder.leads());
  holder.refuse(ErrorKind::TooManyRequests, Seconds(3));
  CHECK(holder.step() == "wait 2000");  // the end of the term, which is told
}

TEST_CASE("Two renewals at one wall time differ, or others would take a holder with a halted clock for dead") {
  Candidate c;
  c.win();
  std::string last = c.spec()["renewTime"];
  for (int i = 0; i < 3; ++i) {
    c.now.mono += Seconds(2);
    CHECK(c.step() == "hold");
    CHECK(c.spec()["renewTime"] != last);
    last = c.spec()["renewTime"];
    c.accept();
  }
}

TEST_CASE("A Lease that cannot be made for want of its namespace is a failure, asked for again in 2 s") {
  Candidate c;
  CHECK(c.step() == "get");
  c.refuse(ErrorKind::NotFound);
  CHECK(c.step() == "create");
  c.refuse(ErrorKind::NotFound);
  REQUIRE(c.machine.problem());
  CHECK(c.machine.problem()->message == "cannot create or patch Lease sys/dhc: the server's words");
  CHECK(c.step() == "wait 2000");
  c.pass(Seconds(2));
  CHECK(c.step() == "create");
}

TEST_CASE("When nobody has led for 60 s the candidates say so, to the millisecond, and until somebody does") {
  Candidate c;
  CHECK(c.step() == "get");
  const auto start = c.now.mono;
  while (c.now.mono < start + Seconds(60)) {
    CHECK_FALSE(c.machine.is_leaderless(c.now.mono));
    const auto step = c.step();
    if (step.starts_with("wait")) {
      c.pass(Millis(std::stoi(step.substr(5))));
    } else {
      c.refuse(ErrorKind::Invalid);
    }
  }
  CHECK(c.now.mono == start + Seconds(60));
  CHECK(c.machine.is_leaderless(c.now.mono));
  c.see({});
  CHECK_FALSE(c.machine.is_leaderless(c.now.mono));
}

TEST_CASE("A dead holder that asked for a day is told of after 60 s, a living one never") {
  Candidate c;
  CHECK(c.step() == "get");
  c.answer({.duration = 86400});
  CHECK(c.step() == "wait 60000");
  c.pass(Seconds(60));
  CHECK(c.machine.is_leaderless(c.now.mono));
  CHECK(c.step() == fmt::format("wait {}000", 86400 - 60));

  Candidate standby;
  CHECK(standby.step() == "get");
  standby.answer({});
  for (int i = 0; i < 100; ++i) {
    standby.pass(Seconds(2));
    standby.see({.renewed = fmt::format("2026-11-20T12:0{}:{:02}.000000Z", i / 30, i % 30 * 2),
                 .version = fmt::format("{}", 20 + i)});
    CHECK_FALSE(standby.machine.is_leaderless(standby.now.mono));
  }
  Candidate leader;
  leader.win();
  for (int i = 0; i < 100; ++i) {
    leader.pass(Seconds(2));
    CHECK(leader.step() == "hold");
    leader.accept();
    CHECK_FALSE(leader.machine.is_leaderless(leader.now.mono));
  }
}

TEST_CASE("A leader that is blind stops at once, gives the Lease back when its calls are over, and waits for others") {
  Candidate c;
  c.win();
  c.machine.blind(true);
  // Its last renewal was sent now: nothing of it can be under way after 14 s, and nobody may begin before that.
  CHECK(c.step() == "wait 14000");
  CHECK_FALSE(c.leads());
  CHECK(c.machine.yields(c.now.mono));
  c.pass(Seconds(14) - kTick);
  CHECK(c.step() == "wait 1");
  c.pass(kTick);
  CHECK(c.step() == "give");
  c.answer({.holder = "", .duration = 1, .renewed = "2026-11-20T12:00:20.000000Z", .version = "200"});
  CHECK(c.step() == "wait 31000");
  CHECK_FALSE(c.machine.is_leaderless(c.now.mono));
  c.pass(Seconds(31) - kTick);
  CHECK(c.step() == "wait 1");
  // Nobody took it: blind as it is, it leads on, for everybody else may be blind, too.
  c.pass(kTick);
  CHECK(c.step() == "hold");
  c.accept();
  CHECK(c.leads());
}

TEST_CASE("The Lease is given back at most once in ten minutes, to the millisecond") {
  Candidate c;
  c.win();
  c.machine.blind(true);
  const auto first = c.now.mono;
  CHECK(c.step() == "wait 14000");
  c.pass(Seconds(14));
  REQUIRE(c.step() == "give");
  c.answer({.holder = "", .duration = 1, .renewed = "2026-11-20T12:00:20.000000Z", .version = "200"});
  c.pass(Seconds(31));
  while (c.now.mono < first + std::chrono::minutes(10) - kTick) {
    if (c.step() == "hold") c.accept();
    REQUIRE(c.leads());
    c.pass(std::min<Millis>(Seconds(1), first + std::chrono::minutes(10) - kTick - c.now.mono));
  }
  if (c.step() == "hold") c.accept();
  CHECK(c.leads());
  c.pass(kTick);
  (void)c.step();
  CHECK_FALSE(c.leads());
}

TEST_CASE("Another who takes the Lease meanwhile keeps it, and who sees again takes part as ever") {
  Candidate c;
  c.win();
  c.machine.blind(true);
  (void)c.step();
  c.pass(Seconds(14));
  REQUIRE(c.step() == "give");
  c.refuse(ErrorKind::Conflict);
  c.pass(Millis(500));
  REQUIRE(c.step() == "get");
  c.answer({.holder = "other", .version = "300"});
  CHECK_FALSE(c.leads());
  c.machine.blind(false);
  CHECK(c.step() == "wait 30500");
  c.see({.holder = "other", .renewed = "2026-11-20T12:00:40.000000Z", .version = "301"});
  c.pass(Millis(30500));
  CHECK(c.step() == "hold");
}

TEST_CASE("Who stands by and is blind does not touch the Lease, and a lost answer of the release is looked up") {
  Candidate standby;
  standby.machine.blind(true);
  CHECK(standby.step() == "get");
  standby.answer({});
  CHECK(standby.step() == "wait 15000");
  Candidate c;
  c.win();
  c.machine.blind(true);
  (void)c.step();
  c.pass(Seconds(14));
  REQUIRE(c.step() == "give");
  c.refuse(ErrorKind::TimedOut);
  c.pass(Seconds(2));
  CHECK(c.step() == "give");
  c.refuse(ErrorKind::Conflict);
  c.pass(Millis(500));
  REQUIRE(c.step() == "get");
  c.answer({.holder = "", .duration = 1, .renewed = "2026-11-20T12:00:20.000000Z", .version = "200"});
  CHECK_FALSE(c.leads());
  CHECK(c.step() == "wait 28500");
}

TEST_CASE("A stop while the Lease is given back releases what is ours") {
  Candidate c;
  c.win();
  c.machine.blind(true);
  (void)c.step();
  c.machine.release();
  CHECK(c.step() == "give");
}

}  // namespace dhc::k8s
