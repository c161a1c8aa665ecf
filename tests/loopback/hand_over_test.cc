// What the API server's answers, and its silence, make of the objects by which nodes are handed over.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reconcilers/hand_over/execute.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/no_credentials.h"

namespace {
using dhc::ErrorKind;
using dhc::hand_over::MakeObject;
using dhc::hand_over::RemoveObject;
using dhc::test::error_of;
using dhc::test::Loopback;

std::string said(int code, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", code,
                     body.size(), body);
}

std::string refused(int code, const std::string& reason, const std::string& message = "no") {
  return said(code, fmt::format(R"({{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{}",)"
                                R"("message":"{}","code":{}}})",
                                reason, message, code));
}

const std::string kKinds = said(200, R"({"kind":"APIResourceList","groupVersion":"repair.example.com/v1","resources":[
  {"name":"repairs/status","kind":"Repair","namespaced":true},
  {"name":"repairs","kind":"Repair","namespaced":true},{"name":"resets","kind":"Reset","namespaced":false}]})");
const std::string kNone = refused(404, "NotFound");

const dhc::ObjectName kRepair{.slot = "s",
                              .api_version = "repair.example.com/v1",
                              .kind = "Repair",
                              .ns = "repair",
                              .name = "node-a",
                              .incident = "0123456789ab",
                              .node = "node-a",
                              .policy = "p"};
const MakeObject kMake{.object = kRepair, .text = R"({"metadata":{"name":"node-a"}})"};
const RemoveObject kRemove{.object = kRepair};

/// The object as it stands; `more`: members of its metadata.
std::string standing(const std::string& incident, const std::string& manager = "device-health-controller",
                     const std::string& more = {}) {
  return said(200, fmt::format(R"({{"metadata":{{"name":"node-a","uid":"u-1","labels":{{"app.kubernetes.io/)"
                               R"(managed-by":"{}"}},"annotations":{{"device-health.io/incident":"{}"}}{}}}}})",
                               manager, incident, more));
}

/// Gives these answers one after the other, the last one again and again; an empty one is no answer.
dhc::test::HttpsServer::Script in_turn(std::vector<std::string> answers) {
  auto next = std::make_shared<std::size_t>(0);
  return [answers = std::move(answers), next](dhc::test::ServerConnection& connection) {
    while (!connection.read_request().empty()) {
      const auto& answer = answers.at(std::min(*next, answers.size() - 1));
      ++*next;
      if (answer.empty() || !connection.send(answer)) return;
    }
  };
}

struct Tried {
  dhc::Status status;
  std::vector<std::string> sent;  ///< Method and target.
  std::vector<std::string> bodies;
};

template <class A>
Tried try_with(const A& action, std::vector<std::string> answers) {
  Loopback loopback(in_turn(std::move(answers)));
  const dhc::k8s::Client client(std::shared_ptr<dhc::k8s::Transport>(std::move(loopback.transport)),
                                std::make_shared<dhc::test::NoCredentials>(), "test");
  Tried tried{.status = execute(action, client, {}), .sent = {}, .bodies = {}};
  for (const auto& request : loopback.server.requests()) {
    tried.sent.push_back(request.substr(0, request.find(" HTTP/")));
    tried.bodies.push_back(request.substr(request.find("\r\n\r\n") + 4));
  }
  return tried;
}

const std::string kGet = "GET /apis/repair.example.com/v1/namespaces/repair/repairs/node-a";
const std::string kPost =
    "POST /apis/repair.example.com/v1/namespaces/repair/repairs?fieldManager=device-health-hand-over";

}  // namespace

TEST_CASE("an object is looked for and then created where its kind is served") {
  const auto tried = try_with(kMake, {kKinds, kNone, said(201, "{}")});
  CHECK(tried.status.has_value());
  REQUIRE(tried.sent == std::vector<std::string>{"GET /apis/repair.example.com/v1", kGet, kPost});
  CHECK(tried.bodies[2] == kMake.text);
}

TEST_CASE("a kind that is not served, or not so, is said with its remedy and one request") {
  const auto no_group = try_with(kMake, {kNone});
  REQUIRE(error_of(no_group.status) == ErrorKind::Invalid);
  CHECK(no_group.status.error().message ==
        "kind Repair of repair.example.com/v1 is not served: install its CustomResourceDefinition, or mend "
        "handOver.resource.template");
  CHECK(no_group.sent.size() == 1);
  CHECK(error_of(try_with(kMake, {said(200, R"({"resources":[]})")}).status) == ErrorKind::Invalid);
  CHECK(error_of(try_with(kMake, {said(200, "[]")}).status) == ErrorKind::Malformed);
  auto nowhere = kMake;
  nowhere.object.ns.clear();
  CHECK(try_with(nowhere, {kKinds}).status.error().message ==
        "Repair is in namespaces: write metadata.namespace in handOver.resource.template");
  auto somewhere = kMake;
  somewhere.object.kind = "Reset";
  CHECK(try_with(somewhere, {kKinds}).status.error().message ==
        "Reset is cluster-scoped: remove metadata.namespace from handOver.resource.template");
  somewhere.object.ns.clear();
  CHECK(try_with(somewhere, {kKinds, kNone, said(201, "{}")}).sent.back() ==
        "POST /apis/repair.example.com/v1/resets?fieldManager=device-health-hand-over");
}

TEST_CASE("what stands already for this incident is done, as after a lost answer, also while somebody deletes it") {
  for (const auto* more : {"", R"(,"deletionTimestamp":"2026-11-26T00:00:00Z")"}) {
    const auto tried = try_with(kMake, {kKinds, standing("0123456789ab", "device-health-controller", more)});
    CHECK(tried.status.has_value());
    CHECK(tried.sent.size() == 2);
  }
}

TEST_CASE("another's object of that name is neither changed nor taken over, nor is one of ours for another incident") {
  const auto foreign = try_with(kMake, {kKinds, standing("0123456789ab", "node-healthcheck")});
  REQUIRE(error_of(foreign.status) == ErrorKind::Contested);
  CHECK(foreign.status.error().message ==
        "Repair repair/node-a is there, is not ours and is left as it is: delete it, or choose another metadata.name");
  CHECK(foreign.sent.size() == 2);
  CHECK(error_of(try_with(kMake, {kKinds, standing("")}).status) == ErrorKind::Contested);
  const auto earlier = try_with(kMake, {kKinds, standing("ba9876543210")});
  REQUIRE(error_of(earlier.status) == ErrorKind::Contested);
  CHECK(earlier.status.error().message ==
        "Repair repair/node-a of an earlier incident is there: delete it, or put {incident} into the name");
  const auto leaving = try_with(kMake, {kKinds, standing("ba9876543210", "device-health-controller",
                                                         R"(,"deletionTimestamp":"2026-11-26T00:00:00Z")")});
  CHECK(error_of(leaving.status) == ErrorKind::Declined);
  CHECK(leaving.sent.size() == 2);
}

TEST_CASE("a name that is taken between the read and the creation is looked at again") {
  const auto exists = refused(409, "AlreadyExists");
  CHECK(try_with(kMake, {kKinds, kNone, exists, standing("0123456789ab")}).status.has_value());
  CHECK(error_of(try_with(kMake, {kKinds, kNone, exists, standing("", "other")}).status) == ErrorKind::Contested);
  CHECK(error_of(try_with(kMake, {kKinds, kNone, exists, kNone}).status) == ErrorKind::Conflict);
}

TEST_CASE("a right that is missing is named") {
  const auto forbidden = refused(403, "Forbidden", "repairs.repair.example.com is forbidden");
  for (const auto& answers : {std::vector{kKinds, forbidden}, std::vector{kKinds, kNone, forbidden}}) {
    const auto tried = try_with(kMake, answers);
    REQUIRE(error_of(tried.status) == ErrorKind::Forbidden);
    CHECK(tried.status.error().message ==
          "repairs.repair.example.com is forbidden; get, create and delete of repairs.repair.example.com are needed: "
          "see docs/hand-over.md");
  }
  CHECK(error_of(try_with(kRemove, {kKinds, forbidden}).status) == ErrorKind::Forbidden);
  CHECK(error_of(try_with(kRemove, {kKinds, standing("0123456789ab"), forbidden}).status) == ErrorKind::Forbidden);
}

TEST_CASE("an object that its server refuses, or for which there is no namespace, is not asked for in a loop") {
  CHECK(error_of(try_with(kMake, {kKinds, kNone, refused(422, "Invalid")}).status) == ErrorKind::Invalid);
  const auto nowhere =
      try_with(kMake, {kKinds, kNone, refused(404, "NotFound", "namespaces \\\"repair\\\" not found")});
  REQUIRE(error_of(nowhere.status) == ErrorKind::Invalid);
  CHECK(nowhere.status.error().message ==
        "Repair repair/node-a: namespaces \"repair\" not found; create the namespace, or mend "
        "handOver.resource.template");
}

TEST_CASE("a read without an answer is no doubt, a creation without one is") {
  CHECK(error_of(try_with(kMake, {""}).status) == ErrorKind::Unread);
  CHECK(error_of(try_with(kMake, {refused(503, "ServiceUnavailable")}).status) == ErrorKind::Unread);
  CHECK(error_of(try_with(kMake, {kKinds, ""}).status) == ErrorKind::Unread);
  CHECK(error_of(try_with(kMake, {kKinds, kNone, ""}).status) == ErrorKind::Unavailable);
  CHECK(error_of(try_with(kMake, {kKinds, kNone, refused(504, "Timeout")}).status) == ErrorKind::Doubtful);
}

TEST_CASE("only ours of that incident is deleted, by its UID") {
  const auto tried = try_with(kRemove, {kKinds, standing("0123456789ab"), said(200, "{}")});
  CHECK(tried.status.has_value());
  REQUIRE(tried.sent.size() == 3);
  CHECK(tried.sent[2] == "DELETE /apis/repair.example.com/v1/namespaces/repair/repairs/node-a");
  CHECK(tried.bodies[2].contains(R"("preconditions":{"uid":"u-1"})"));
  for (const auto& seen : {kNone, standing("ba9876543210"), standing("0123456789ab", "other")}) {
    const auto left = try_with(kRemove, {kKinds, seen});
    CHECK(left.status.has_value());
    CHECK(left.sent.size() == 2);
  }
  CHECK(try_with(kRemove, {kNone}).status.has_value());
  CHECK(error_of(try_with(kRemove, {kKinds, ""}).status) == ErrorKind::Unread);
  CHECK(error_of(try_with(kRemove, {kKinds, standing("0123456789ab"), refused(409, "Conflict")}).status) ==
        ErrorKind::Conflict);
}

TEST_CASE("an object whose version is served no longer is deleted by another one of its group") {
  const auto group = said(200, R"({"kind":"APIGroup","name":"repair.example.com","versions":[
    {"groupVersion":"repair.example.com/v2beta1","version":"v2beta1"},
    {"groupVersion":"repair.example.com/v2","version":"v2"}]})");
  const auto empty = said(200, R"({"resources":[]})");
  const auto tried = try_with(kRemove, {kNone, group, empty, kKinds, standing("0123456789ab"), said(200, "{}")});
  CHECK(tried.status.has_value());
  CHECK(tried.sent == std::vector<std::string>{"GET /apis/repair.example.com/v1", "GET /apis/repair.example.com",
                                               "GET /apis/repair.example.com/v2beta1",
                                               "GET /apis/repair.example.com/v2",
                                               "GET /apis/repair.example.com/v2/namespaces/repair/repairs/node-a",
                                               "DELETE /apis/repair.example.com/v2/namespaces/repair/repairs/node-a"});
  // Its version may be there without it, and its group be gone.
  CHECK(try_with(kRemove, {empty, group, empty, empty}).status.has_value());
  CHECK(try_with(kRemove, {kNone}).sent.size() == 2);
  CHECK(error_of(try_with(kRemove, {kNone, ""}).status) == ErrorKind::Unread);
  CHECK(error_of(try_with(kRemove, {kNone, said(200, "[]")}).status) == ErrorKind::Malformed);
  CHECK(error_of(try_with(kRemove, {kNone, group, ""}).status) == ErrorKind::Unread);
}

TEST_CASE("a name that does not fit in a path sends nothing") {
  auto bad = kMake;
  bad.object.name = "../nodes/a";
  CHECK(error_of(try_with(bad, {kKinds}).status) == ErrorKind::Invalid);
  CHECK(try_with(bad, {kKinds}).sent.empty());
  auto core = kRemove;
  core.object.api_version = "v1";
  CHECK(try_with(core, {kKinds}).sent.empty());
}
