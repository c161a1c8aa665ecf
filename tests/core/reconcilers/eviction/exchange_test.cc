#include "reconcilers/eviction/exchange.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "domain/contract/job_record.h"

namespace dhc::test {

using eviction::EvictPod;
using eviction::Exchange;
using k8s::Method;

namespace {

Result<k8s::Response> ok(std::string body) {
  return k8s::Response{.status = 200, .headers = {}, .body = std::move(body)};
}

std::string pod_text(std::string_view health, std::string_view meta = "", std::string_view uid = "u-1",
                     std::string_view words = "") {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"train","namespace":"a","uid":"{}","resourceVersion":"7"{}}},)"
      R"("spec":{{"nodeName":"node-a","containers":[{{"name":"c","resources":{{"limits":{{"example.com/gpu":"1"}}}}}}]}},)"
      R"("status":{{"phase":"Running","containerStatuses":[{{"name":"c","allocatedResourcesStatus":[{{"name":)"
      R"("example.com/gpu","resources":[{{"resourceID":"gpu-0","health":"{}","message":"{}"}}]}}]}}]}}}})",
      uid, meta, health, words);
}

std::string dra_pod_text(std::string_view health, std::string_view name, std::string_view uid) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"a","uid":"{}","resourceVersion":"7"}},)"
      R"("spec":{{"nodeName":"node-a","resourceClaims":[{{"name":"gpu","resourceClaimName":"card"}}],)"
      R"("containers":[{{"name":"c"}}]}},"status":{{"phase":"Running","containerStatuses":[{{"name":"c",)"
      R"("allocatedResourcesStatus":[{{"name":"claim:gpu","resources":[{{"resourceID":"x","health":"{}"}}]}}]}}]}}}})",
      name, uid, health);
}

std::string claim_text(std::string_view device, std::string_view ready, std::string_view uid = "u-claim") {
  return fmt::format(
      R"({{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"card","namespace":"a","uid":"{}",)"
      R"("resourceVersion":"3"}},"status":{{"allocation":{{"devices":{{"results":[{{"request":"gpu","driver":"d","pool":"p",)"
      R"("device":"{}"}}]}}}},"devices":[{{"driver":"d","pool":"p","device":"{}","conditions":[{{"type":"Ready",)"
      R"("status":"{}","reason":"r","message":"m","lastTransitionTime":"2026-11-20T12:00:00Z"}}]}}]}}}})",
      uid, device, device, ready);
}

std::string slice_text(std::string_view device, std::string_view taint, std::string_view pool = "p",
                       std::string_view node = "node-a") {
  return fmt::format(
      R"({{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"slice","uid":"u-slice",)"
      R"("resourceVersion":"3"}},"spec":{{"driver":"d","nodeName":"{}","pool":{{"name":"{}","generation":1}},)"
      R"("devices":[{{"name":"{}","taints":[{}]}}]}}}})",
      node, pool, device, taint);
}

EvictPod plugin_action() {
  EvictPod action{
      .ns = "a", .name = "train", .uid = "u-1", .grace_period_seconds = {}, .key = {}, .device = {}, .policy = {}};
  action.key = DeviceKey::plugin("node-a", "example.com/gpu", "gpu-0");
  action.signal.health = {k8s::Health::Unhealthy};
  return action;
}

EvictPod dra_action() {
  auto action = plugin_action();
  action.key = DeviceKey::dra("d", "p", "dev-0");
  action.signal.claim_name = "card";
  action.signal.claim_uid = "u-claim";
  return action;
}

/// Runs the attempt on these answers, and names the requests that it made.
struct Run {
  Run(EvictPod action, std::vector<Result<k8s::Response>> answers) {
    Exchange exchange(std::move(action));
    for (const auto& answer : answers) {
      const auto request = exchange.next();
      if (!request) break;
      requests.push_back(std::string(to_string(request->method)) + " " +
                         request->target.substr(request->target.rfind('/') + 1));
      CHECK(request->target.find("resourceVersion") == std::string::npos);
      exchange.take(answer);
    }
    over = !exchange.next().has_value();
    outcome = exchange.outcome();
    for (const auto& read : exchange.reads()) {
      reads.push_back(
          fmt::format("{} {} {} -> {} {}", read.name, read.held_uid, read.held_version, read.uid, read.version));
    }
  }
  [[nodiscard]] std::string kind() const {
    if (!over) return "not over";
    return outcome ? "done" : std::string(to_string(outcome.error().kind));
  }
  std::vector<std::string> requests;
  std::vector<std::string> reads;
  bool over = false;
  Status outcome;
};

Result<k8s::Response> error(ErrorKind kind, std::string words = "no") { return fail(kind, std::move(words)); }

}  // namespace

TEST_CASE("An eviction follows a fresh read that still shows the signal") {
  const Run run(plugin_action(), {ok(pod_text("Unhealthy")), ok("{}")});
  CHECK(run.kind() == "done");
  CHECK(run.requests == std::vector<std::string>{"GET train", "POST eviction"});
}

TEST_CASE("Nothing is sent when the fresh read shows that the signal is gone") {
  struct Case {
    std::string body;
    std::string kind;
  };
  for (const auto& [body, kind] : std::vector<Case>{
           {pod_text("Healthy"), "Outdated"},
           {pod_text("Unknown"), "Outdated"},
           {pod_text("Unhealthy", R"(,"deletionTimestamp":"2026-11-20T12:00:00Z","deletionGracePeriodSeconds":30)"),
            "Outdated"},
           {pod_text("Unhealthy", R"(,"annotations":{"device-health.io/opt-out":"true"})"), "Outdated"},
           {pod_text("Unhealthy", "", "u-2"), "NotFound"},
           {"no JSON", "Unread"}}) {
    CAPTURE(body);
    const Run run(plugin_action(), {ok(body), ok("{}")});
    CHECK(run.requests == std::vector<std::string>{"GET train"});
    CHECK(run.kind() == kind);
  }
}

TEST_CASE(
    "An answer that came after the plan had looked counts as one that it has seen, within what the pod may ask for") {
  constexpr std::string_view kNotice =
      R"(\"v\":1,\"n\":1,\"action\":\"evict\",\"device\":\"node-a/example.com/gpu/gpu-0\",\"at\":\"2026-11-20T12:01:00Z\")";
  const auto annotated = [&](std::string_view answer) {
    return ok(pod_text("Unhealthy", fmt::format(R"(,"annotations":{{"device-health.io/notice":"{{{}}}",)"
                                                R"("device-health.io/notice-response":"{}"}})",
                                                kNotice, answer)));
  };
  auto passed = plugin_action();
  passed.notice = GivenNotice{.at = *parse_rfc3339("2026-11-20T12:01:00Z"),
                              .deadline = *parse_rfc3339("2026-11-20T12:06:00Z"),
                              .extend_up_to = std::chrono::minutes(10),
                              .is_shown = true,
                              .device = "node-a/example.com/gpu/gpu-0"};
  passed.decided_at = *parse_rfc3339("2026-11-20T12:06:00Z");
  auto answered = passed;
  answered.decided_at = *parse_rfc3339("2026-11-20T12:03:00Z");
  auto late = passed;
  late.decided_at = *parse_rfc3339("2026-11-20T12:16:00Z");
  struct Case {
    std::string what;
    EvictPod action;
    std::string answer;
    std::string kind;
  };
  for (const auto& [what, action, answer, kind] :
       std::vector<Case>{{"more time", passed, "extend-until: 2026-11-20T12:08:00Z", "Outdated"},
                         {"far more time than it may have", passed, "extend-until: 2030-11-20T12:08:00Z", "Outdated"},
                         {"no more than it had", passed, "extend-until: 2026-11-20T12:06:00Z", "done"},
                         {"once more when all is used up", late, "extend-until: 2026-11-20T12:30:00Z", "done"},
                         {"nonsense", passed, "please", "done"},
                         {"done, as the plan saw it", answered, "done", "done"},
                         {"done, taken back", answered, "", "Outdated"},
                         {"done, and then more time", answered, "extend-until: 2026-11-20T12:04:00Z", "Outdated"}}) {
    CAPTURE(what);
    const Run run(action, {annotated(answer), ok("{}")});
    CHECK(run.kind() == kind);
    CHECK(run.requests.size() == (kind == "done" ? 2U : 1U));
    if (kind == "Outdated" && !run.outcome)
      CHECK(run.outcome.error().message.find("by its answer now it has until") != std::string::npos);
  }
  CHECK(Run(plugin_action(), {annotated("extend-until: 2026-11-20T12:08:00Z"), ok("{}")}).kind() == "done");
  auto restarted = answered;
  restarted.notice->restarts = 1;
  CHECK(Run(restarted, {annotated(""), ok("{}")}).kind() == "done");
}

TEST_CASE("A policy that names Unknown is held against what the read shows, and a report that is Healthy ends it") {
  auto action = plugin_action();
  action.signal.health = {k8s::Health::Unhealthy, k8s::Health::Unknown};
  CHECK(Run(action, {ok(pod_text("Unknown")), ok("{}")}).kind() == "done");
  CHECK(Run(action, {ok(pod_text("Healthy")), ok("{}")}).kind() == "Outdated");
}

TEST_CASE("The driver's words must still fit the policy's pattern") {
  auto action = plugin_action();
  action.signal.message = MessagePattern::compile("critical").value();
  CHECK(Run(action, {ok(pod_text("Unhealthy", "", "u-1", "critical XID 79")), ok("{}")}).kind() == "done");
  CHECK(Run(action, {ok(pod_text("Unhealthy", "", "u-1", "non-fatal XID 43")), ok("{}")}).kind() == "Outdated");
}

TEST_CASE("A read that fails evicts nobody, and says by which remedy") {
  for (const auto& [kind, becomes] :
       std::vector<std::pair<ErrorKind, std::string>>{{ErrorKind::NotFound, "NotFound"},
                                                      {ErrorKind::Forbidden, "Forbidden"},
                                                      {ErrorKind::Unauthorized, "Unauthorized"},
                                                      {ErrorKind::TooManyRequests, "TooManyRequests"},
                                                      {ErrorKind::Cancelled, "Cancelled"},
                                                      {ErrorKind::Doubtful, "Unread"},
                                                      {ErrorKind::Unavailable, "Unread"},
                                                      {ErrorKind::TimedOut, "Unread"},
                                                      {ErrorKind::Gone, "Unread"},
                                                      {ErrorKind::Malformed, "Unread"}}) {
    CAPTURE(to_string(kind));
    const Run run(plugin_action(), {error(kind), ok("{}")});
    CHECK(run.kind() == becomes);
    CHECK(run.requests.size() == 1);
  }
}

TEST_CASE("After an answer in doubt the pod is read again, and decides") {
  const auto stands = ok(pod_text("Unhealthy"));
  const auto terminating = ok(pod_text("Unhealthy", R"(,"deletionTimestamp":"2026-11-20T12:00:00Z")"));
  struct Case {
    ErrorKind answer;
    Result<k8s::Response> look;
    std::string kind;
  };
  for (const auto& [answer, look, kind] :
       std::vector<Case>{{ErrorKind::Doubtful, stands, "Declined"},
                         {ErrorKind::Doubtful, terminating, "done"},
                         {ErrorKind::Doubtful, error(ErrorKind::NotFound), "done"},
                         {ErrorKind::Doubtful, ok(pod_text("Unhealthy", "", "u-2")), "done"},
                         {ErrorKind::Doubtful, error(ErrorKind::TimedOut), "Doubtful"},
                         {ErrorKind::Doubtful, error(ErrorKind::Cancelled), "Doubtful"},
                         {ErrorKind::Doubtful, ok("no JSON"), "Doubtful"},
                         {ErrorKind::Unavailable, stands, "Unavailable"},
                         {ErrorKind::Unavailable, terminating, "done"},
                         {ErrorKind::TimedOut, stands, "TimedOut"},
                         {ErrorKind::TimedOut, error(ErrorKind::NotFound), "done"},
                         {ErrorKind::Malformed, stands, "Unavailable"}}) {
    CAPTURE(to_string(answer));
    const Run run(plugin_action(), {stands, error(answer, "two budgets"), look});
    CHECK(run.kind() == kind);
    CHECK(run.requests == std::vector<std::string>{"GET train", "POST eviction", "GET train"});
    if (!run.outcome) CHECK(run.outcome.error().message.starts_with("two budgets"));
  }
}

TEST_CASE("What the reads have shown is told beside what was held, whatever became of the eviction") {
  using Reads = std::vector<std::string>;
  auto action = plugin_action();
  action.seen_version = "6";
  CHECK(Run(action, {ok(pod_text("Unhealthy")), ok("{}")}).reads == Reads{"train u-1 6 -> u-1 7"});
  CHECK(Run(action, {ok(pod_text("Unhealthy", "", "u-2"))}).reads == Reads{"train u-1 6 -> u-2 7"});
  CHECK(Run(action, {error(ErrorKind::NotFound)}).reads == Reads{"train u-1 6 ->  "});
  CHECK(Run(action, {ok(pod_text("Unhealthy")), error(ErrorKind::Doubtful), error(ErrorKind::NotFound)}).reads ==
        Reads{"train u-1 6 -> u-1 7", "train u-1 6 ->  "});
  for (const auto kind : {ErrorKind::Forbidden, ErrorKind::Unavailable, ErrorKind::TimedOut, ErrorKind::Malformed}) {
    CAPTURE(to_string(kind));
    CHECK(Run(action, {error(kind)}).reads.empty());
  }
  auto dra = dra_action();
  dra.signal.witness_ns = "a";
  dra.signal.witness_name = "other";
  dra.signal.witness_uid = "u-9";
  dra.signal.witness_version = "5";
  dra.signal.claim_version = "2";
  CHECK(Run(dra, {ok(dra_pod_text("Unhealthy", "train", "u-1")), ok(dra_pod_text("Unhealthy", "other", "u-9")),
                  ok(claim_text("dev-0", "True")), ok("{}")})
            .reads == Reads{"train u-1  -> u-1 7", "other u-9 5 -> u-9 7", "card u-claim 2 -> u-claim 3"});
}

TEST_CASE("A refusal that leaves no doubt is not looked at again") {
  for (const auto kind : {ErrorKind::Blocked, ErrorKind::Forbidden, ErrorKind::Invalid, ErrorKind::TooManyRequests,
                          ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::Cancelled}) {
    CAPTURE(to_string(kind));
    const Run run(plugin_action(), {ok(pod_text("Unhealthy")), error(kind), ok(pod_text("Unhealthy"))});
    CHECK(run.kind() == to_string(kind));
    CHECK(run.requests.size() == 2);
  }
}

TEST_CASE("A device of a claim is resolved by the claim as it was just read") {
  const auto pod = ok(dra_pod_text("Unhealthy", "train", "u-1"));
  CHECK(Run(dra_action(), {pod, ok(claim_text("dev-0", "True")), ok("{}")}).kind() == "done");
  CHECK(Run(dra_action(), {pod, ok(claim_text("dev-1", "True")), ok("{}")}).kind() == "Outdated");
  CHECK(Run(dra_action(), {pod, ok(claim_text("dev-0", "True", "u-other")), ok("{}")}).kind() == "Outdated");
  CHECK(Run(dra_action(), {pod, error(ErrorKind::NotFound), ok("{}")}).kind() == "Outdated");
  CHECK(Run(dra_action(), {pod, error(ErrorKind::TimedOut), ok("{}")}).kind() == "Unread");
  CHECK(Run(dra_action(), {ok(dra_pod_text("Healthy", "train", "u-1")), ok(claim_text("dev-0", "True")), ok("{}")})
            .kind() == "Outdated");
}

TEST_CASE("Where a claim's condition is the signal, the claim is read and decides") {
  auto action = dra_action();
  action.signal.health.clear();
  action.signal.claim_conditions = {{"Ready", "False"}};
  const auto pod = ok(dra_pod_text("Unknown", "train", "u-1"));
  const Run run(action, {pod, ok(claim_text("dev-0", "False")), ok("{}")});
  CHECK(run.kind() == "done");
  CHECK(run.requests == std::vector<std::string>{"GET train", "GET card", "POST eviction"});
  CHECK(Run(action, {pod, ok(claim_text("dev-0", "True")), ok("{}")}).kind() == "Outdated");
}

TEST_CASE("Where the driver's taint is the signal, claim and slice are read, and nothing is evicted when it is gone") {
  constexpr std::string_view kXid = R"({"key":"d/xid","value":"79","effect":"NoSchedule"})";
  constexpr std::string_view kHarmless = R"({"key":"d/xid","value":"43","effect":"None"})";
  auto action = dra_action();
  action.signal.health.clear();
  action.signal.slice_name = "slice";
  action.signal.slice_node = "node-a";
  action.signal.device_taints = {{.key = "d/*", .effect = {}}};
  const auto pod = ok(dra_pod_text("Unknown", "train", "u-1"));
  const auto claim = ok(claim_text("dev-0", "True"));
  const Run run(action, {pod, claim, ok(slice_text("dev-0", kXid)), ok("{}")});
  CHECK(run.kind() == "done");
  CHECK(run.requests == std::vector<std::string>{"GET train", "GET card", "GET slice", "POST eviction"});
  const auto ends = [&](const Result<k8s::Response>& slice) {
    const Run other(action, {pod, claim, slice, ok("{}")});
    CHECK(other.requests.size() == 3);
    return other.kind();
  };
  CHECK(ends(ok(slice_text("dev-0", ""))) == "Outdated");
  CHECK(ends(ok(slice_text("dev-0", kHarmless))) == "Outdated");
  CHECK(ends(ok(slice_text("dev-1", kXid))) == "Outdated");
  CHECK(ends(ok(slice_text("dev-0", kXid, "q"))) == "Outdated");
  CHECK(ends(ok(slice_text("dev-0", kXid, "p", "node-x"))) == "Outdated");
  CHECK(ends(error(ErrorKind::NotFound)) == "Outdated");
  CHECK(ends(error(ErrorKind::Forbidden)) == "Forbidden");
  CHECK(ends(error(ErrorKind::TimedOut)) == "Unread");
  CHECK(ends(ok("no JSON")) == "Unread");
  // The claim has been given another device since.
  CHECK(Run(action, {pod, ok(claim_text("dev-1", "True")), ok(slice_text("dev-0", kXid)), ok("{}")}).kind() ==
        "Outdated");
}

TEST_CASE("A taint without a slice that publishes the device evicts nobody") {
  auto action = dra_action();
  action.signal.health.clear();
  action.signal.device_taints = {{.key = "d/*", .effect = {}}};
  const Run run(action, {ok(dra_pod_text("Unknown", "train", "u-1")), ok(claim_text("dev-0", "True")), ok("{}")});
  CHECK(run.kind() == "Outdated");
}

TEST_CASE("A word that the policy names is held against what the read shows") {
  auto action = plugin_action();
  action.signal.health_words = {"PermanentlyUnhealthy"};
  CHECK(Run(action, {ok(pod_text("PermanentlyUnhealthy")), ok("{}")}).kind() == "done");
  CHECK(Run(action, {ok(pod_text("Unhealthy")), ok("{}")}).kind() == "done");
  const Run other(action, {ok(pod_text("Degraded")), ok("{}")});
  CHECK(other.kind() == "Outdated");
  CHECK(other.outcome.error().message.contains("is Degraded now"));
}

TEST_CASE("Where another holder's report is the signal, that pod is read as well") {
  auto action = dra_action();
  action.signal.witness_ns = "a";
  action.signal.witness_name = "other";
  action.signal.witness_uid = "u-9";
  const auto pod = ok(dra_pod_text("Unknown", "train", "u-1"));
  const auto claim = ok(claim_text("dev-0", "True"));
  const Run run(action, {pod, ok(dra_pod_text("Unhealthy", "other", "u-9")), claim, ok("{}")});
  CHECK(run.kind() == "done");
  CHECK(run.requests == std::vector<std::string>{"GET train", "GET other", "GET card", "POST eviction"});
  CHECK(Run(action, {pod, ok(dra_pod_text("Healthy", "other", "u-9")), claim, ok("{}")}).kind() == "Outdated");
  CHECK(Run(action, {pod, ok(dra_pod_text("Unhealthy", "other", "u-8")), claim, ok("{}")}).kind() == "Outdated");
  CHECK(Run(action, {pod, error(ErrorKind::NotFound), claim, ok("{}")}).kind() == "Outdated");
}

namespace {

std::string job_text(std::int64_t limit, std::int64_t failed, std::string_view credits = "",
                     std::string_view uid = "u-job") {
  return fmt::format(R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"train","namespace":"a","uid":"{}",)"
                     R"("resourceVersion":"5","annotations":{{"device-health.io/retry-credits":{}}}}},)"
                     R"("spec":{{"backoffLimit":{}}},"status":{{"failed":{}}}}})",
                     uid, nlohmann::json(credits).dump(), limit, failed);
}

std::string credit_of(const std::string& pod_uid, std::int64_t limit, RetryCredit::State state) {
  return format_retry_credits(
      {.limit = limit,
       .credits = {
           {.pod_uid = pod_uid, .pod = "train-0", .device = "d", .at = WallTime{}, .limit = limit, .state = state}}});
}

EvictPod job_action() {
  auto action = plugin_action();
  action.retry.emplace();
  action.retry->job_name = "train";
  action.retry->job_uid = "u-job";
  action.retry->job_version = "9";
  return action;
}

std::string end_of(const EvictPod& action, Result<k8s::Response> job) {
  return Run(action, {ok(pod_text("Unhealthy")), std::move(job), ok("{}")}).kind();
}

}  // namespace

TEST_CASE("A pod whose loss nothing pays for goes while the fresh Job can spare it, whatever the watch showed") {
  auto action = job_action();
  action.retry->limit = 3;
  action.retry->uncounted = 1;
  CHECK(end_of(action, ok(job_text(3, 1, ""))) == "done");
  CHECK(end_of(action, ok(job_text(3, 2, ""))) == "Outdated");
  CHECK(end_of(action, ok(job_text(4, 2, ""))) == "done");
  CHECK(end_of(action, ok(job_text(2, 0, ""))) == "Outdated");
}

TEST_CASE("A pod that goes on its Job's credit goes while the Job has it") {
  using State = RetryCredit::State;
  auto action = job_action();
  action.retry->has_credit = true;
  const auto credit = credit_of("u-1", 3, State::Given);
  const Run run(action, {ok(pod_text("Unhealthy")), ok(job_text(3, 2, credit)), ok("{}")});
  CHECK(run.kind() == "done");
  CHECK(run.requests == std::vector<std::string>{"GET train", "GET train", "POST eviction"});
  CHECK(run.reads.back() == "train u-job 9 -> u-job 5");
  CHECK(end_of(action, ok(job_text(2, 2, credit))) == "Outdated");
  CHECK(end_of(action, ok(job_text(3, 2, credit_of("u-1", 3, State::Unspent)))) == "Outdated");
  CHECK(end_of(action, ok(job_text(3, 2, credit_of("u-2", 3, State::Given)))) == "Outdated");
  CHECK(end_of(action, ok(job_text(3, 2, ""))) == "Outdated");
  CHECK(end_of(action, ok(job_text(3, 2, "not ours"))) == "Outdated");
  CHECK(end_of(action, ok(job_text(3, 2, credit, "u-other"))) == "Outdated");
  CHECK(end_of(action, error(ErrorKind::NotFound)) == "Outdated");
  CHECK(end_of(action, error(ErrorKind::Forbidden)) == "Forbidden");
  CHECK(end_of(action, error(ErrorKind::TimedOut)) == "Unread");
  CHECK(end_of(action, ok("no JSON")) == "Unread");
}

TEST_CASE("A pod of a Job without a record goes while the limit that was seen stands, whoever else has failed") {
  auto action = job_action();
  action.retry->limit = 3;
  CHECK(end_of(action, ok(job_text(3, 3))) == "done");
  CHECK(end_of(action, ok(job_text(2, 1))) == "Outdated");
}

TEST_CASE("A name that does not fit in a path ends the attempt before anything is sent") {
  auto action = plugin_action();
  action.name = "../x";
  const Run run(action, {ok("{}")});
  CHECK(run.requests.empty());
  CHECK(run.kind() == "Invalid");
}

}  // namespace dhc::test
