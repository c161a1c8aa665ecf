#include "app/health_report.h"

#include <array>
#include <memory>
#include <span>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "domain/cluster/views.h"

using dhc::Facts;
using dhc::MonoTime;
using dhc::Seconds;
using dhc::k8s::Kind;

namespace {
constexpr MonoTime kNow{Seconds(10000)};
const dhc::Now kReadAt{.mono = kNow, .wall = *dhc::parse_rfc3339("2026-11-20T12:00:00Z")};

std::string whole_report(const Facts& facts, std::span<const dhc::Verdict> verdicts) {
  const auto report = dhc::verdicts_report(facts, kReadAt);
  CHECK(report.ok);
  return report.text + dhc::verdicts_list(verdicts);
}
}  // namespace

TEST_CASE("the loop is alive until it has not turned for 30 s") {
  Facts facts;
  facts.last_turn = MonoTime(Seconds(100));
  CHECK(dhc::healthz(facts, MonoTime(Seconds(130)) - dhc::Millis(1)).ok);
  const auto report = dhc::healthz(facts, MonoTime(Seconds(130)));
  CHECK_FALSE(report.ok);
  CHECK(report.text == "[-]run loop: no turn for 30 s\n");
}

TEST_CASE("readiness names every kind that is missing and why") {
  Facts facts;
  facts.watches = {{.kind = Kind::Pod, .listed = true, .forbidden = false, .problem = ""},
                   {.kind = Kind::Node, .listed = false, .forbidden = false, .problem = "connection refused"},
                   {.kind = Kind::Job, .listed = false, .forbidden = true, .problem = "jobs.batch is forbidden"}};
  facts.policy_problem = "ConfigMap dhc/policy does not exist";
  const auto report = dhc::readyz(facts, kNow);
  CHECK_FALSE(report.ok);
  CHECK(report.text ==
        "[+]Pod: listed\n"
        "[-]Node: not listed yet: connection refused\n"
        "[-]Job: forbidden: jobs.batch is forbidden\n"
        "[-]policy: not loaded: ConfigMap dhc/policy does not exist\n");
}

TEST_CASE("a listed kind whose watch is coming back stays ready and says so") {
  Facts facts;
  facts.watches = {{.kind = Kind::Pod, .listed = true, .forbidden = false, .problem = "503"}};
  facts.policy_loaded = true;
  const auto report = dhc::readyz(facts, kNow);
  CHECK(report.ok);
  CHECK(report.text == "[+]Pod: listed: 503\n[+]policy: loaded\n");
}

TEST_CASE("a kind that was listed but is forbidden now is not ready") {
  Facts facts;
  facts.watches = {{.kind = Kind::Pod, .listed = true, .forbidden = true, .problem = ""}};
  facts.policy_loaded = true;
  CHECK_FALSE(dhc::readyz(facts, kNow).ok);
}

TEST_CASE("verdicts are shown with their subject, words and times, and with who leads and how old the view is") {
  Facts facts;
  facts.policy_loaded = true;
  facts.mode = dhc::Mode::Enforce;
  facts.election = dhc::ElectionFact{.leads = true, .holder = "me"};
  facts.watches = {{.kind = Kind::Pod, .listed = true, .problem = {}, .heard_at = kNow - Seconds(3)},
                   {.kind = Kind::Node, .listed = true, .problem = {}}};
  dhc::Verdict verdict;
  verdict.subject = {.kind = "Pod", .ns = "a", .name = "p", .uid = "u"};
  verdict.device = "d/pool/gpu-0";
  verdict.containers = {"sidecar", "train"};
  verdict.policy = "gpus";
  verdict.mode = "enforce";
  verdict.reason = dhc::Reason::WaitingForWindow;
  verdict.message = "for 60 s";
  verdict.since = dhc::parse_rfc3339("2026-11-20T18:23:16Z").value();
  const std::string head =
      R"({"leader":"me","role":"leader","mode":"enforce","viewAges":{"Pod":3,"Node":null},"pauses":[],"verdicts":[{"subject":{"kind":"Pod","namespace":"a","name":"p","uid":"u"},"device":"d/pool/gpu-0","containers":["sidecar","train"],"policy":"gpus",)"
      R"("mode":"enforce","gate":null,)"
      R"("reason":"WaitingForWindow","message":"for 60 s","since":"2026-11-20T18:23:16Z","nextStepAt":)";
  CHECK(whole_report(facts, std::array{verdict}) == head + "null}]}\n");
  verdict.next_at = verdict.since + Seconds(60);
  CHECK(whole_report(facts, std::array{verdict}) == head + R"("2026-11-20T18:24:16Z"}]})" + "\n");
  CHECK(dhc::verdicts_report(facts, kReadAt).ok);
  CHECK(whole_report(facts, {}).ends_with(R"("verdicts":[]})"
                                          "\n"));
  const auto two = nlohmann::json::parse(whole_report(facts, std::array{verdict, verdict}));
  CHECK(two["verdicts"].size() == 2);
}

TEST_CASE("a replica that judges nothing shows no verdicts, not none, and says whom to ask or what is missing") {
  Facts facts;
  facts.policy_loaded = true;
  facts.watches = {{.kind = Kind::Pod, .listed = true, .problem = {}, .heard_at = kNow - Seconds(3)},
                   {.kind = Kind::Lease, .listed = false, .problem = {}}};
  const auto said = [&] {
    const auto report = dhc::verdicts_report(facts, kReadAt);
    CHECK_FALSE(report.ok);
    return report.text;
  };
  facts.election = dhc::ElectionFact{.holder = "other_1"};
  CHECK(
      said() ==
      R"({"leader":"other_1","role":"standby","mode":"observe","viewAges":{"Pod":3,"Lease":null},"pauses":[],"verdicts":null,)"
      R"("message":"this replica is a standby and serves no verdicts: ask the leader, other_1"})"
      "\n");
  const std::string nobody = "serves no verdicts, and nobody is known to lead: see /readyz";
  facts.election->leaderless = true;
  CHECK(said().find(R"({"leader":null,)") == 0);
  CHECK(said().find(nobody) != std::string::npos);
  facts.election = dhc::ElectionFact{};
  CHECK(said().find(nobody) != std::string::npos);
  facts.election.reset();
  CHECK(dhc::verdicts_report(facts, kReadAt).text.find(R"("leader":null,"role":"alone")") != std::string::npos);
  facts.watches.front().listed = false;
  CHECK(said().find("nothing is judged yet: Pod is not listed: see /readyz") != std::string::npos);
  facts.watches.front().listed = true;
  facts.policy_loaded = false;
  CHECK(said().find("nothing is judged yet: no policy is loaded") != std::string::npos);
  facts.policy_problem = "line 3: unknown key";  // judged: the verdict ConfigRejected says so
  CHECK(dhc::verdicts_report(facts, kReadAt).ok);
}

TEST_CASE("an error counts until the watch runs again, and a compacted version never does") {
  dhc::k8s::WatchStatus status;
  status.synced = true;
  status.last_error = dhc::Error{.kind = dhc::ErrorKind::Unavailable, .message = "refused", .retry_after = {}};
  status.state = dhc::k8s::WatchState::BackingOff;
  CHECK(dhc::watch_fact(status).problem == "refused");
  status.state = dhc::k8s::WatchState::Watching;
  CHECK(dhc::watch_fact(status).problem.empty());
  status.state = dhc::k8s::WatchState::Resyncing;
  status.last_error->kind = dhc::ErrorKind::Gone;
  CHECK(dhc::watch_fact(status).problem.empty());
  status.state = dhc::k8s::WatchState::Forbidden;
  CHECK(dhc::watch_fact(status).forbidden);
}

TEST_CASE("who leads and who stands by are ready, and nobody is when nobody leads") {
  Facts facts;
  facts.policy_loaded = true;
  const auto said = [&](const dhc::ElectionFact& election, bool ok) {
    facts.election = election;
    const auto report = dhc::readyz(facts, kNow);
    CHECK(report.ok == ok);
    return report.text.substr(report.text.find("leader election"));
  };
  CHECK(said({.leads = true, .holder = "me"}, true) == "leader election: leading\n");
  CHECK(said({.holder = "other"}, true) == "leader election: other leads\n");
  CHECK(said({}, true) == "leader election: standing by\n");
  const auto since = dhc::parse_rfc3339("2026-11-20T18:23:16Z");
  CHECK(said({.leads = true, .holder = "me", .since = since}, true) ==
        "leader election: leading since 2026-11-20T18:23:16Z\n");
  CHECK(said({.holder = "other", .since = since}, true) ==
        "leader election: other leads, not leading since 2026-11-20T18:23:16Z\n");
  CHECK(said({.leaderless = true, .problem = "cannot patch Lease a/b: refused"}, false) ==
        "leader election: nobody has led for a minute: cannot patch Lease a/b: refused\n");
  CHECK(said({.holder = "other", .leaderless = true}, false) ==
        "leader election: nobody has led for a minute; other holds the Lease and does not renew it\n");
}

TEST_CASE("readiness says the age of each watch's last word, and ends at the bound") {
  Facts facts;
  facts.policy_loaded = true;
  const auto said = [&](dhc::Millis age, bool ok) {
    facts.watches = {{.kind = Kind::Pod, .listed = true, .problem = {}, .heard_at = kNow - age}};
    const auto report = dhc::readyz(facts, kNow);
    CHECK(report.ok == ok);
    return report.text.substr(0, report.text.find('\n'));
  };
  CHECK(said(Seconds(12), true) == "[+]Pod: listed, last message 12 s ago");
  CHECK(said(dhc::kOldestView - dhc::Millis(1), true) == "[+]Pod: listed, last message 299 s ago");
  CHECK(said(dhc::kOldestView, false) ==
        "[-]Pod: listed, last message 300 s ago: nothing is evicted, tainted or patched on it");
}

TEST_CASE("readiness says that the server's data went back: not ready until all is listed afresh, and kept in mind") {
  Facts facts;
  facts.policy_loaded = true;
  facts.watches = {{.kind = Kind::Pod,
                    .listed = true,
                    .problem = {},
                    .heard_at = kNow,
                    .behind = true,
                    .went_back = "the API server's version is 1000, and was 1200"}};
  auto report = dhc::readyz(facts, kNow);
  CHECK_FALSE(report.ok);
  CHECK(report.text.starts_with(
      "[-]Pod: the data went back: the API server's version is 1000, and was 1200; listing again\n"));
  facts.watches.front().behind = false;
  report = dhc::readyz(facts, kNow);
  CHECK(report.ok);
  CHECK(report.text.starts_with(
      "[+]Pod: listed, last message 0 s ago; the data went back: the API server's version is 1000, "
      "and was 1200; listed again\n"));
}

TEST_CASE("a kind that is not served has no age") {
  dhc::k8s::WatchStatus status;
  status.last_event_at = MonoTime(Seconds(1));
  status.state = dhc::k8s::WatchState::NotServed;
  CHECK_FALSE(dhc::watch_fact(status).heard_at.has_value());
  status.state = dhc::k8s::WatchState::BackingOff;
  CHECK(dhc::watch_fact(status).heard_at == MonoTime(Seconds(1)));
}

TEST_CASE("readiness says how far the server's clock is from ours, and is ready all the same") {
  Facts facts;
  facts.policy_loaded = true;
  const auto said = [&](dhc::Millis ahead) {
    facts.server_ahead = ahead;
    const auto report = dhc::readyz(facts, kNow);
    CHECK(report.ok);
    return report.text.substr(0, report.text.find('\n'));
  };
  CHECK(said(dhc::Millis(999)) == "[+]clock: within a second of the API server's");
  CHECK(said(dhc::Millis(7300)) == "[+]clock: the API server's is 7.3 s ahead of ours");
  CHECK(said(dhc::Millis(-61'000)) == "[+]clock: the API server's is 61.0 s behind ours");
}

TEST_CASE("whoever gave the Lease back says so") {
  Facts facts;
  facts.policy_loaded = true;
  facts.election = dhc::ElectionFact{.gave_back = true};
  CHECK(dhc::readyz(facts, kNow).text.find("[+]leader election: the Lease was given back: a watch is silent\n") !=
        std::string::npos);
}

TEST_CASE("the verdicts are headed by the pauses in force, also where none of them names one") {
  Facts facts;
  facts.policy_loaded = true;
  CHECK(whole_report(facts, {}).find(R"("pauses":[],"verdicts":[])") != std::string::npos);
  dhc::Policy policy;
  policy.limits.paused = true;
  policy.limits.pauses = {
      {.nodes = {"node-*"}, .until = *dhc::parse_rfc3339("2026-11-20T14:00:00Z"), .reason = "rack 7"},
      {.nodes = {"node-*"}, .until = *dhc::parse_rfc3339("2026-11-20T11:00:00Z")}};
  facts.policy = std::make_shared<const dhc::Policy>(policy);
  const auto pauses = nlohmann::json::parse(whole_report(facts, {})).at("pauses");
  REQUIRE(pauses.size() == 2);
  CHECK(pauses[0].at("until").is_null());
  CHECK(pauses[1].at("until") == "2026-11-20T14:00:00Z");
  CHECK(pauses[1].at("why").get<std::string>().find("rack 7") != std::string::npos);
  // By the clock that decisions go by.
  const auto listed_where_server_is_ahead = [&](dhc::Millis ahead) {
    facts.server_ahead = ahead;
    return nlohmann::json::parse(whole_report(facts, {})).at("pauses").size();
  };
  CHECK(listed_where_server_is_ahead(Seconds(3 * 3600)) == 1);
  CHECK(listed_where_server_is_ahead(-Seconds(7200)) == 3);
  CHECK(listed_where_server_is_ahead(Seconds(60)) == 2);
}
