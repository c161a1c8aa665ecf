#include "reconcilers/job_retry/build.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace dhc::job_retry {

using nlohmann::json;

namespace {

const PatchJob kCredit{.ns = "team a",
                       .name = "train",
                       .uid = "u",
                       .resource_version = "7",
                       .limit_before = 0,
                       .limit = 1,
                       .notes = {{.annotation = "device-health.io/retry-credits", .before = {}, .text = "{}"}},
                       .device = "d"};

json body_of(const PatchJob& action) { return json::parse(build_patch(action)->body); }

json dead_job() {
  return json::parse(R"({"apiVersion":"batch/v1","kind":"Job",
    "metadata":{"name":"train","namespace":"ns","uid":"u","resourceVersion":"9","labels":{"app":"x","job-name":"train"},
                "annotations":{"team":"a","device-health.io/losses":"[]"}},
    "spec":{"backoffLimit":0,"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},
            "template":{"metadata":{"labels":{"app":"x","controller-uid":"u","batch.kubernetes.io/job-name":"train"}},
                        "spec":{"restartPolicy":"Never"}}},
    "status":{"failed":1}})");
}

const RecreateJob kRecreate{.ns = "ns", .name = "train", .uid = "u", .device = "d"};

}  // namespace

TEST_CASE("A credit is one merge patch of version, annotation and limit") {
  const auto request = build_patch(kCredit);
  REQUIRE(request.has_value());
  CHECK(request->method == k8s::Method::Patch);
  CHECK(request->target == "/apis/batch/v1/namespaces/team%20a/jobs/train?fieldManager=device-health-controller");
  CHECK(request->headers[1].value == "application/merge-patch+json");
  CHECK(json::parse(request->body) == json::parse(R"({"metadata":{"uid":"u","resourceVersion":"7",
    "annotations":{"device-health.io/retry-credits":"{}"}},"spec":{"backoffLimit":1}})"));
}

TEST_CASE("A note that changes no limit leaves the spec alone") {
  auto note = kCredit;
  note.limit = note.limit_before;
  CHECK(!body_of(note).contains("spec"));
}

TEST_CASE("A tested patch tests UID, limit and the annotation's old value, and names no version") {
  auto action = kCredit;
  action.by_test = true;
  action.has_annotations = true;
  action.notes[0].before = "old";
  CHECK(build_patch(action)->headers[1].value == "application/json-patch+json");
  const auto key = "/metadata/annotations/device-health.io~1retry-credits";
  CHECK(body_of(action) == json({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", "u"}},
                                 {{"op", "test"}, {"path", "/spec/backoffLimit"}, {"value", 0}},
                                 {{"op", "test"}, {"path", key}, {"value", "old"}},
                                 {{"op", "add"}, {"path", key}, {"value", "{}"}},
                                 {{"op", "replace"}, {"path", "/spec/backoffLimit"}, {"value", 1}}}));
}

TEST_CASE("Where the Job has no annotation at all a tested patch makes the map first") {
  auto action = kCredit;
  action.by_test = true;
  const auto body = body_of(action);
  CHECK(body[2] == json({{"op", "test"}, {"path", "/metadata/annotations"}, {"value", nullptr}}));
  CHECK(body[3] == json({{"op", "add"}, {"path", "/metadata/annotations"}, {"value", json::object()}}));
}

TEST_CASE("A tested patch that changes no limit does not test it: a finished Job's is not known") {
  auto action = kCredit;
  action.by_test = true;
  action.limit = action.limit_before = 6;
  for (const auto& step : body_of(action)) CHECK(step["path"] != "/spec/backoffLimit");
}

TEST_CASE("A failed test is a conflict, another refusal is not") {
  auto action = kCredit;
  const Status refused = fail(ErrorKind::Invalid, "the server rejected our request");
  CHECK(judged(action, refused).error().kind == ErrorKind::Invalid);
  action.by_test = true;
  CHECK(judged(action, refused).error().kind == ErrorKind::Conflict);
  CHECK(judged(action, Status()).has_value());
}

TEST_CASE("Without UID, version or a name that fits in a path nothing is sent") {
  for (auto field : {&PatchJob::uid, &PatchJob::resource_version, &PatchJob::name, &PatchJob::ns}) {
    auto action = kCredit;
    action.*field = {};
    CHECK(build_patch(action).error().kind == ErrorKind::Invalid);
  }
}

TEST_CASE(
    "A replacement has the dead Job's spec without what the server generated, and a name that follows from its UID") {
  const auto request = build_replacement(kRecreate, dead_job().dump());
  REQUIRE(request.has_value());
  CHECK(request->method == k8s::Method::Post);
  CHECK(request->target == "/apis/batch/v1/namespaces/ns/jobs?fieldManager=device-health-controller");
  const auto made = json::parse(request->body);
  CHECK(made["metadata"]["name"].get<std::string>().starts_with("train-r"));
  CHECK(made["metadata"]["labels"] == json({{"app", "x"}, {"device-health.io/recreated-from", "u"}}));
  CHECK(made["metadata"]["annotations"] == json({{"team", "a"}}));
  CHECK(!made.contains("status"));
  CHECK(!made["spec"].contains("selector"));
  CHECK(made["spec"]["template"]["metadata"]["labels"] == json({{"app", "x"}}));
  CHECK(build_replacement(kRecreate, dead_job().dump())->body == request->body);
}

TEST_CASE("A replacement's name is one wherever the dead Job's is cut") {
  for (std::size_t length = 45; length <= 63; ++length) {
    for (const auto* sign : {".", "-", "--"}) {
      auto action = kRecreate;
      action.name = std::string(length - std::string_view(sign).size(), 'x') + sign + "yyyyyyyyyyyyyyyyyy";
      CAPTURE(action.name);
      const auto request = build_replacement(action, dead_job().dump());
      REQUIRE(request.has_value());
      const auto name = json::parse(request->body)["metadata"]["name"].get<std::string>();
      CHECK(name.size() <= 63);
      const auto suffix = name.size() - std::string_view("-r01234567").size();
      REQUIRE(name.substr(suffix, 2) == "-r");
      CHECK(name[suffix - 1] != '.');
      CHECK(name[suffix - 1] != '-');
    }
  }
}

TEST_CASE("What has the replacement's name is the replacement if it says of whom") {
  CHECK(build_look(kRecreate)->target.starts_with("/apis/batch/v1/namespaces/ns/jobs/train-r"));
  CHECK(is_replacement(kRecreate, R"({"metadata":{"labels":{"device-health.io/recreated-from":"u"}}})"));
  CHECK_FALSE(is_replacement(kRecreate, R"({"metadata":{"labels":{"device-health.io/recreated-from":"v"}}})"));
  CHECK_FALSE(is_replacement(kRecreate, R"({"metadata":{}})"));
  CHECK_FALSE(is_replacement(kRecreate, "{"));
}

TEST_CASE("A replacement begins with the limit that its owner gave, not with the retries that we added") {
  const auto credits = [](int entries, int limit) {
    json list = json::array();
    for (int i = 0; i < entries; ++i) {
      list.push_back({{"podUID", "p" + std::to_string(i)},
                      {"pod", "p"},
                      {"device", "d"},
                      {"at", "2026-11-20T12:00:00Z"},
                      {"limit", limit},
                      {"state", "spent"}});
    }
    return json({{"limit", limit}, {"credits", list}}).dump();
  };
  const auto made_from = [&](int limit, const std::string& annotation) {
    auto dead = dead_job();
    dead["spec"]["backoffLimit"] = limit;
    dead["metadata"]["annotations"]["device-health.io/retry-credits"] = annotation;
    return json::parse(build_replacement(kRecreate, dead.dump())->body)["spec"]["backoffLimit"].get<int>();
  };
  CHECK(made_from(3, credits(3, 3)) == 0);
  CHECK(made_from(5, credits(3, 5)) == 2);
  CHECK(made_from(2, credits(3, 2)) == 0);
  CHECK(made_from(2, credits(3, 5)) == 2);  // somebody has put it back already
  CHECK(made_from(5, "three") == 5);
}

TEST_CASE("A Job that another controller manages is not recreated") {
  auto managed = dead_job();
  managed["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue";
  CHECK(build_replacement(kRecreate, managed.dump()).error().kind == ErrorKind::Invalid);
  managed["spec"]["managedBy"] = "kubernetes.io/job-controller";
  CHECK(build_replacement(kRecreate, managed.dump()).has_value());
}

TEST_CASE("A Job with an owner or a manual selector, a replacement and another Job are not recreated") {
  auto owned = dead_job();
  owned["metadata"]["ownerReferences"] = json::array({{{"kind", "CronJob"}}});
  CHECK(build_replacement(kRecreate, owned.dump()).error().kind == ErrorKind::Invalid);
  auto manual = dead_job();
  manual["spec"]["manualSelector"] = true;
  CHECK(build_replacement(kRecreate, manual.dump()).error().kind == ErrorKind::Invalid);
  auto again = dead_job();
  again["metadata"]["labels"]["device-health.io/recreated-from"] = "older";
  CHECK(build_replacement(kRecreate, again.dump()).error().kind == ErrorKind::Invalid);
  auto other = dead_job();
  other["metadata"]["uid"] = "v";
  CHECK(build_replacement(kRecreate, other.dump()).error().kind == ErrorKind::Conflict);
  for (const auto* text : {"", "[]", "{\"metadata\":{\"uid\":7}}", "{"}) {
    CHECK(!build_replacement(kRecreate, text).has_value());
  }
}

}  // namespace dhc::job_retry
