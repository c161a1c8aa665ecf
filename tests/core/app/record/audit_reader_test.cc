#include "app/record/audit_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/record/rehearsal.h"

using namespace dhc;

namespace {

std::string audit_time(int second) {
  return fmt::format("2026-11-20T12:{:02}:{:02}.000000Z", second / 60, second % 60);
}

struct AuditPart {
  std::string verb = "patch";
  std::string sub = "status";
  std::string extra;  // of the event
  std::string query;
};

std::string audit_event(int second, const std::string& resource, const std::string& name, const std::string& object,
                        const AuditPart& part = {}) {
  return fmt::format(
      R"({{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete","verb":"{}",)"
      R"("requestURI":"/api/v1/{}/{}{}",)"
      R"("objectRef":{{"resource":"{}","namespace":"default","name":"{}","subresource":"{}"}},)"
      R"("responseStatus":{{"code":200}},{}"stageTimestamp":"{}"{}}})",
      part.verb, resource, name, part.query, resource, name, part.sub, part.extra, audit_time(second),
      object.empty() ? "" : ",\"responseObject\":" + object);
}

std::string audit_node(int allocatable, int version = 1) {
  return fmt::format(
      R"({{"kind":"Node","apiVersion":"v1","metadata":{{"name":"n","uid":"node","resourceVersion":"{}"}},)"
      R"("status":{{"conditions":[{{"type":"Ready","status":"True"}}],"capacity":{{"example.com/gpu":"4"}},)"
      R"("allocatable":{{"example.com/gpu":"{}"}}}}}})",
      version, allocatable);
}

std::string audit_pod(std::string_view health, int version, const std::string& metadata = {},
                      std::string_view uid = "pod-1") {
  return fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-1","namespace":"default","uid":"{}",)"
      R"("resourceVersion":"{}","creationTimestamp":"2026-11-20T11:00:00Z",)"
      R"("ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"rs","controller":true}}]{}}},)"
      R"("spec":{{"nodeName":"n","containers":[{{"name":"c","env":[{{"name":"T","value":"hunter2"}}],)"
      R"("resources":{{"limits":{{"example.com/gpu":"1"}}}}}}]}},"status":{{"phase":"Running","containerStatuses":)"
      R"([{{"name":"c","state":{{"running":{{"startedAt":"2026-11-20T11:00:05Z"}}}},"allocatedResourcesStatus":)"
      R"([{{"name":"example.com/gpu","resources":[{{"resourceID":"g0","health":"{}"}}]}}]}}]}}}})",
      uid, version, metadata, health);
}

/// What other policies make of a log, and what was recorded on the way.
struct AuditPlay {
  record::AuditCounts counts;
  record::RehearsalReport report;
  std::string lines;
};

AuditPlay played(const std::vector<std::string>& log) {
  Policy policy;
  policy.policies.push_back(
      DevicePolicy{.name = "p", .mode = Mode::Enforce, .after = Seconds(60), .evict = EvictRules{}});
  record::Rehearsal rehearsal(policy);
  AuditPlay play;
  record::AuditReader reader([&](std::string_view line) {
    play.lines += line;
    play.lines += '\n';
    return rehearsal.feed(line);
  });
  for (const auto& line : log) {
    const auto fed = reader.feed(line);
    REQUIRE_MESSAGE(fed, fed.error().message);
  }
  play.counts = reader.counts();
  play.report = rehearsal.finish();
  return play;
}

std::string rs() {
  return R"({"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","uid":"rs","resourceVersion":"1"}})";
}

std::string ns() {
  return R"({"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default","uid":"ns","resourceVersion":"1"}})";
}

}  // namespace

TEST_CASE("What an audit log was answered rehearses as what a watch would have told") {
  const auto play = played({
      audit_event(0, "namespaces", "default", ns(), {.verb = "create", .sub = {}, .extra = {}, .query = {}}),
      audit_event(1, "nodes", "n", audit_node(4)),
      audit_event(2, "replicasets", "web", rs(), {.verb = "create", .sub = {}, .extra = {}, .query = {}}),
      audit_event(3, "pods", "web-1", audit_pod("Healthy", 2)),
      audit_event(300, "pods", "web-1", audit_pod("Unhealthy", 3)),
      audit_event(301, "nodes", "n", audit_node(3, 4)),
      audit_event(1800, "nodes", "n", audit_node(3, 5)),
  });
  CHECK(play.counts.events == 7);
  CHECK(play.counts.used == 7);
  CHECK(play.counts.bare == 0);
  CHECK(play.report.runs == 1);
  CHECK(play.report.then.evictions == 0);
  REQUIRE(play.report.now.evictions == 1);
  const auto& fate = play.report.fates.front();
  CHECK(fate.subject.name == "web-1");
  CHECK(fate.bad_at);
  CHECK(fate.now);
  CHECK(play.report.then.held_bad == doctest::Approx(25.0 / 60).epsilon(0.01));
  CHECK(play.report.now.held_bad < 2.5 / 60);
  CHECK(play.lines.find("hunter2") == std::string::npos);
}

TEST_CASE("A pod is gone when the last that keeps it has gone, and not before") {
  const std::string going = R"(,"deletionTimestamp":"2026-11-20T12:06:00Z","deletionGracePeriodSeconds":30)";
  const std::string dying = R"(,"deletionTimestamp":"2026-11-20T12:06:00Z","deletionGracePeriodSeconds":0)";
  const std::string kept = R"(,"finalizers":["batch.kubernetes.io/job-tracking"])";
  const auto gone_in = [&](const std::vector<std::string>& more) {
    std::vector<std::string> log = {audit_event(1, "nodes", "n", audit_node(4)),
                                    audit_event(3, "pods", "web-1", audit_pod("Healthy", 2))};
    log.insert(log.end(), more.begin(), more.end());
    return played(log).lines.find(
               "{\"gone\":{\"kind\":\"Pod\",\"ns\":\"default\",\"name\":\"web-1\",\"uid\":\"pod-1\"}}") !=
           std::string::npos;
  };
  const AuditPart removal{.verb = "delete", .sub = {}, .extra = {}, .query = {}};
  CHECK_FALSE(gone_in({audit_event(5, "pods", "web-1", audit_pod("Healthy", 3, going), removal)}));
  CHECK(gone_in({audit_event(5, "pods", "web-1", audit_pod("Healthy", 3, dying), removal)}));
  CHECK_FALSE(gone_in({audit_event(5, "pods", "web-1", audit_pod("Healthy", 3, dying + kept), removal)}));
  CHECK(gone_in({audit_event(5, "pods", "web-1", audit_pod("Healthy", 3, dying + kept), removal),
                 audit_event(6, "pods", "web-1", audit_pod("Healthy", 4, dying))}));
  CHECK(gone_in({audit_event(5, "pods", "web-1", R"({"kind":"Status","status":"Success"})", removal)}));
}

TEST_CASE("What an audit log does not tell is counted") {
  const auto play = played({
      audit_event(1, "nodes", "n", audit_node(4)), audit_event(2, "pods", "web-1", ""),        // logged as Metadata
      audit_event(3, "pods", "web-1", R"({"kind":"Pod","metadata":{"uid":"u"},"status":7})"),  // no pod
      audit_event(4, "pods", "", "", {.verb = "deletecollection", .sub = {}, .extra = {}, .query = {}}),
      audit_event(5, "pods", "web-1", R"({"kind":"Status"})",
                  {.verb = "create", .sub = "binding", .extra = {}, .query = {}}),
      audit_event(6, "secrets", "s", R"({"kind":"Secret","data":{"a":"hunter2"}})"),
      audit_event(0, "nodes", "n", audit_node(4, 2)),  // late
  });
  CHECK(play.counts.events == 4);
  CHECK(play.counts.used == 3);
  CHECK(play.counts.bare == 1);
  CHECK(play.counts.unreadable == 1);
  CHECK(play.counts.collections == 1);
  CHECK(play.lines.find("hunter2") == std::string::npos);
}

TEST_CASE("What is no audit log is refused") {
  record::AuditReader reader([](std::string_view) { return Status(); });
  CHECK(reader.feed("{").error().message.starts_with("not JSON"));
  CHECK(reader.feed(R"({"recording":"x"})").error().message ==
        "no event of an audit log: apiVersion is not audit.k8s.io/v1");
}

TEST_CASE("A list in an audit log tells what was there") {
  std::string pod = audit_pod("Unhealthy", 8);
  const auto list =
      fmt::format(R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{}]}})", pod);
  const auto play = played({audit_event(1, "pods", "", list, {.verb = "list", .sub = {}, .extra = {}, .query = {}}),
                            audit_event(1200, "nodes", "n", audit_node(3))});
  CHECK(play.counts.used == 2);
  CHECK(play.report.then.held_bad > 0.3);
}

TEST_CASE("A write that was tried with dryRun has changed nothing") {
  const auto bad = audit_pod("Unhealthy", 3);
  const auto played_with = [&](const std::string& tried) {
    return played({audit_event(1, "nodes", "n", audit_node(4)), audit_event(3, "pods", "web-1", bad), tried,
                   audit_event(1803, "nodes", "n", audit_node(3, 9))});
  };
  const std::string options = R"("requestObject":{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]},)";
  const std::string real = R"("requestObject":{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0},)";
  const std::string done = R"({"kind":"Status","status":"Success"})";
  const auto removal = [](const std::string& extra, const std::string& query) {
    return AuditPart{.verb = "delete", .sub = {}, .extra = extra, .query = query};
  };
  for (const auto& tried :
       {audit_event(60, "pods", "web-1", done, removal(options, "")),
        audit_event(60, "pods", "web-1", done, removal("", "?dryRun=All")),
        audit_event(60, "pods", "web-1", audit_pod("Healthy", 4),
                    {.verb = "patch", .sub = {}, .extra = {}, .query = "?fieldManager=flux&dryRun=All&force=true"})}) {
    const auto play = played_with(tried);
    CHECK(play.counts.dry_runs == 1);
    CHECK(play.counts.events == 3);
    CHECK_MESSAGE(play.report.then.held_bad == doctest::Approx(0.5).epsilon(0.01), tried);
  }
  for (const auto& written :
       {audit_event(60, "pods", "web-1", done, removal(real, "?pretty=dryRun")),
        audit_event(60, "pods", "web-1", audit_pod("Healthy", 4),
                    {.verb = "patch", .sub = {}, .extra = {}, .query = "?fieldManager=dryRun"})}) {
    const auto play = played_with(written);
    CHECK(play.counts.dry_runs == 0);
    CHECK(play.counts.events == 4);
    CHECK_MESSAGE(play.report.then.held_bad < 0.1, written);
  }
  const auto collection =
      played({audit_event(1, "nodes", "n", audit_node(4)),
              audit_event(4, "pods", "", "", {.verb = "deletecollection", .sub = {}, .extra = options, .query = {}})});
  CHECK(collection.counts.collections == 0);
  CHECK(collection.counts.dry_runs == 1);
}

TEST_CASE("An object never goes back to an older version, however late its writer's answer was logged") {
  const AuditPart made{.verb = "create", .sub = {}, .extra = {}, .query = {}};
  const AuditPart removal{.verb = "delete", .sub = {}, .extra = {}, .query = {}};
  const std::string dying = R"(,"deletionTimestamp":"2026-11-20T12:06:00Z","deletionGracePeriodSeconds":0)";
  const auto half_hour = [&](const std::vector<std::string>& then) {
    std::vector<std::string> log = {audit_event(1, "nodes", "n", audit_node(4)),
                                    audit_event(3, "pods", "web-1", audit_pod("Unhealthy", 99), made)};
    log.insert(log.end(), then.begin(), then.end());
    log.push_back(audit_event(1804, "nodes", "n", audit_node(4, 200)));
    return played(log);
  };
  SUBCASE("A write that another overtook") {
    const auto play = half_hour({audit_event(4, "pods", "web-1", audit_pod("Healthy", 101)),
                                 audit_event(4, "pods", "web-1", audit_pod("Unhealthy", 100))});
    CHECK(play.report.then.held_bad < 0.01);
    CHECK(play.counts.old == 1);
  }
  SUBCASE("A write of a pod that is gone, and of one that has its name now") {
    const auto play = half_hour({audit_event(4, "pods", "web-1", audit_pod("Unhealthy", 101, dying), removal),
                                 audit_event(5, "pods", "web-1", audit_pod("Unhealthy", 100)),
                                 audit_event(6, "pods", "web-1", audit_pod("Healthy", 102, {}, "pod-2"), made),
                                 audit_event(6, "pods", "web-1", audit_pod("Unhealthy", 100))});
    CHECK(play.report.then.held_bad < 0.01);
    CHECK(play.counts.old == 2);
  }
  SUBCASE("A deletion after the creation of the next of the name") {
    const auto play = half_hour({audit_event(4, "pods", "web-1", audit_pod("Unhealthy", 102, {}, "pod-2"), made),
                                 audit_event(4, "pods", "web-1", audit_pod("Unhealthy", 101, dying), removal)});
    CHECK(play.report.then.held_bad == doctest::Approx(0.5).epsilon(0.01));
    CHECK(play.lines.find(R"("gone":{"kind":"Pod","ns":"default","name":"web-1","uid":"pod-1"})") != std::string::npos);
    CHECK(play.lines.find(R"("gone":{"kind":"Pod","ns":"default","name":"web-1","uid":"pod-2"})") == std::string::npos);
    CHECK(play.counts.old == 0);
  }
  SUBCASE("A deletion that says whose it was in a Status") {
    const std::string done =
        R"({"kind":"Status","status":"Success","details":{"name":"web-1","kind":"pods","uid":"pod-1"}})";
    const auto play = half_hour({audit_event(4, "pods", "web-1", audit_pod("Unhealthy", 102, {}, "pod-2"), made),
                                 audit_event(4, "pods", "web-1", done, removal)});
    CHECK(play.report.then.held_bad == doctest::Approx(0.5).epsilon(0.01));
  }
  SUBCASE("Versions that are no numbers say nothing of their order") {
    auto text = audit_pod("Healthy", 1);
    text.replace(text.find("\"1\""), 3, "\"x1\"");
    const auto play = half_hour({audit_event(4, "pods", "web-1", text)});
    CHECK(play.report.then.held_bad < 0.01);
    CHECK(play.counts.old == 0);
  }
}

TEST_CASE("Events of an audit log that are older than those before them are counted from a minute on") {
  CHECK(played({audit_event(70, "nodes", "n", audit_node(4)), audit_event(10, "nodes", "n", audit_node(4, 2))})
            .counts.late == 0);
  CHECK(played({audit_event(71, "nodes", "n", audit_node(4)), audit_event(10, "nodes", "n", audit_node(4, 2))})
            .counts.late == 1);
}
