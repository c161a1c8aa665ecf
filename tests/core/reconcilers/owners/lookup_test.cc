#include "reconcilers/owners/lookup.h"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace dhc::test {

namespace {

using State = OwnerSight::State;
using Answers = std::map<std::string, Result<std::string>>;  // by target; every other target is 404

constexpr auto kResources =
    R"({"resources":[{"name":"rayclusters/status","kind":"RayCluster","namespaced":true},)"
    R"({"name":"rayclusters","kind":"RayCluster","namespaced":true},{"name":"worlds","kind":"World","namespaced":false}]})";
constexpr auto kObject = "/apis/ray.io/v1/namespaces/team/rayclusters/big";

owners::ReadOwner of(const std::string& api_version, const std::string& kind, const std::string& name) {
  return {.ns = "team", .owner = {.api_version = api_version, .kind = kind, .name = name, .uid = "u1"}, .asked_at = {}};
}
owners::ReadOwner ray() { return of("ray.io/v1", "RayCluster", "big"); }

struct Played {
  std::vector<std::string> asked;
  OwnerSight sight;
  Status status;
};

Played play(const owners::ReadOwner& read, const Answers& answers) {
  Played played;
  owners::Lookup lookup(read);
  while (const auto request = lookup.next()) {
    REQUIRE(played.asked.size() < 10);
    CHECK(request->method == k8s::Method::Get);
    CHECK(request->timeouts.total == Seconds(5));
    played.asked.push_back(request->target);
    const auto found = answers.find(request->target);
    if (found == answers.end()) {
      lookup.answered(fail(ErrorKind::NotFound, "not found"));
    } else if (!found->second) {
      lookup.answered(std::unexpected(found->second.error()));
    } else {
      lookup.answered(k8s::Response{.status = 200, .headers = {}, .body = *found->second});
    }
  }
  played.sight = lookup.sight();
  played.status = lookup.status();
  return played;
}

}  // namespace

TEST_CASE(
    "a read asks for the kind's resource, then for the object's metadata, and finds its word and its controller") {
  const auto played = play(
      ray(), {{"/apis/ray.io/v1", kResources},
              {kObject, R"({"metadata":{"uid":"u1","annotations":{"device-health.io/opt-out":"true","x":"y"},)"
                        R"("ownerReferences":[{"apiVersion":"a/v1","kind":"A","name":"a","uid":"ua"},)"
                        R"({"apiVersion":"ray.io/v1","kind":"RayJob","name":"j","uid":"u2","controller":true}]}})"}});
  CHECK(played.asked == std::vector<std::string>{"/apis/ray.io/v1", kObject});
  CHECK(played.status);
  CHECK(played.sight.state == State::Found);
  CHECK(k8s::find(played.sight.meta.annotations, "device-health.io/opt-out") == "true");
  CHECK(played.sight.meta.controller == k8s::OwnerRef{"ray.io/v1", "RayJob", "j", "u2"});
}

TEST_CASE("only the metadata is asked for, and the whole object of a server that cannot give it alone") {
  owners::Lookup lookup(ray());
  lookup.answered(k8s::Response{.status = 200, .headers = {}, .body = kResources});
  REQUIRE(lookup.next());
  CHECK(lookup.next()->headers ==
        std::vector<k8s::Header>{
            {"Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"}});
}

TEST_CASE("a core kind and one of no namespace are found where they are served") {
  CHECK(play(of("v1", "ReplicationController", "rc"),
             {{"/api/v1",
               R"({"resources":[{"name":"replicationcontrollers","kind":"ReplicationController","namespaced":true}]})"},
              {"/api/v1/namespaces/team/replicationcontrollers/rc", R"({"metadata":{"uid":"u1"}})"}})
            .sight.state == State::Found);
  CHECK(play(of("ray.io/v1", "World", "w"),
             {{"/apis/ray.io/v1", kResources}, {"/apis/ray.io/v1/worlds/w", R"({"metadata":{"uid":"u1"}})"}})
            .sight.state == State::Found);
}

TEST_CASE("an owner that is gone, has another UID, or is of a kind that is not served has not opted out") {
  const auto gone = play(ray(), {{"/apis/ray.io/v1", kResources}});
  CHECK(gone.sight.state == State::Absent);
  CHECK(gone.status);
  CHECK(play(ray(), {{"/apis/ray.io/v1", kResources}, {kObject, R"({"metadata":{"uid":"u9"}})"}}).sight.state ==
        State::Absent);
  CHECK(play(ray(), {}).sight.state == State::Absent);
  CHECK(play(of("v1", "Nothing", "n"), {{"/api/v1", R"({"resources":[]})"}}).sight.state == State::Absent);
  CHECK(play(of("ray.io/v1", "Other", "n"),
             {{"/apis/ray.io/v1", kResources}, {"/apis/ray.io", R"({"versions":[{"version":"v1"}]})"}})
            .sight.state == State::Absent);
}

TEST_CASE("an owner whose version is served no more is found in another version of its group") {
  const auto played =
      play(of("ray.io/v1alpha1", "RayCluster", "big"),
           {{"/apis/ray.io", R"({"versions":[{"version":"v1alpha1"},{"version":"v2"},{"version":"v1"}]})"},
            {"/apis/ray.io/v2", R"({"resources":[]})"},
            {"/apis/ray.io/v1", kResources},
            {kObject, R"({"metadata":{"uid":"u1"}})"}});
  CHECK(played.asked == std::vector<std::string>{"/apis/ray.io/v1alpha1", "/apis/ray.io", "/apis/ray.io/v2",
                                                 "/apis/ray.io/v1", kObject});
  CHECK(played.sight.state == State::Found);
}

TEST_CASE("a group with many versions costs seven requests at most") {
  std::string versions;
  for (int i = 0; i < 100; ++i)
    versions += std::string(i == 0 ? "" : ",") + R"({"version":"v)" + std::to_string(i + 2) + R"("})";
  const auto played = play(ray(), {{"/apis/ray.io", "{\"versions\":[" + versions + "]}"}});
  CHECK(played.asked.size() <= 7);
  CHECK(played.sight.state == State::Absent);
}

TEST_CASE("what is forbidden names the exact rule that is missing") {
  const auto refused = [](const std::string& target) {
    Answers answers = {{"/apis/ray.io/v1", kResources}};
    answers.insert_or_assign(target, fail(ErrorKind::Forbidden, "no"));
    return play(ray(), answers);
  };
  const auto object = refused(kObject);
  CHECK(object.sight.state == State::Forbidden);
  CHECK(object.status.error().kind == ErrorKind::Forbidden);
  CHECK(object.sight.why ==
        "the controller needs the rule {apiGroups: [\"ray.io\"], resources: [rayclusters], verbs: [get]} in a "
        "ClusterRole "
        "with the label device-health.io/owners: \"true\"");
  CHECK(refused("/apis/ray.io/v1").sight.why.find("{nonResourceURLs: [\"/apis/ray.io/v1\"], verbs: [get]}") !=
        std::string::npos);
}

TEST_CASE("a request that fails, or is answered with something else, tells nothing") {
  for (const auto kind :
       {ErrorKind::TimedOut, ErrorKind::Unavailable, ErrorKind::Unauthorized, ErrorKind::TooManyRequests}) {
    for (const std::string target : {"/apis/ray.io/v1", kObject}) {
      Answers answers = {{"/apis/ray.io/v1", kResources}};
      answers.insert_or_assign(target, fail(kind, "why"));
      const auto played = play(ray(), answers);
      CHECK(played.sight.state == State::Failed);
      REQUIRE_FALSE(played.status);
      CHECK(played.status.error().kind == kind);
    }
  }
  const std::string whole = R"({"metadata":{"uid":"u1","annotations":{"device-health.io/opt-out":"true"}}})";
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const auto played = play(ray(), {{"/apis/ray.io/v1", kResources}, {kObject, whole.substr(0, cut)}});
    CHECK(played.sight.state == State::Failed);
    CHECK(played.status.error().kind == ErrorKind::Malformed);
  }
  for (const char* body : {"", "[]", "null", "7"}) {
    CHECK(play(ray(), {{"/apis/ray.io/v1", std::string(body)}}).sight.state == State::Failed);
  }
}

TEST_CASE("a Secret is not read, and nobody is asked for the right to") {
  const auto played = play(of("v1", "Secret", "token"),
                           {{"/api/v1", R"({"resources":[{"name":"secrets","kind":"Secret","namespaced":true}]})"}});
  CHECK(played.asked == std::vector<std::string>{"/api/v1"});
  CHECK(played.sight.state == State::Absent);
}

TEST_CASE("what is kept of an owner is bounded, whatever a tenant wrote into it") {
  const std::string much(1'000'000, 'x');
  const auto big = play(ray(), {{"/apis/ray.io/v1", kResources},
                                {kObject, R"({"metadata":{"uid":"u1","annotations":{"device-health.io/opt-out":")" +
                                              much + R"("},)" + R"("ownerReferences":[{"apiVersion":"a/v1","kind":")" +
                                              much + R"(","name":"a","uid":"ua","controller":true}]}})"}});
  CHECK(big.sight.state == State::Found);
  CHECK(big.sight.meta.annotations.empty());
  CHECK_FALSE(big.sight.meta.controller);
  const auto failed = play(ray(), {{"/apis/ray.io/v1", fail(ErrorKind::Unavailable, much)}});
  CHECK(failed.sight.why.size() < 400);
}

TEST_CASE("a reference that no object can bear leads to no request") {
  for (const auto& read : {of("ray.io/v1", "RayCluster", "../../secrets/x"), of("ray.io/v1", "RayCluster", ""),
                           of("../v1", "RayCluster", "x"), of("a/b/c", "RayCluster", "x"), of("", "RayCluster", "x"),
                           of("ray.io/..", "RayCluster", "x"), of("ray.io/v1", "RayCluster", "a%2Fb")}) {
    CAPTURE(read.owner.api_version);
    CAPTURE(read.owner.name);
    const auto played = play(read, {});
    CHECK(played.asked.empty());
    CHECK(played.sight.state == State::Absent);
  }
}

}  // namespace dhc::test
