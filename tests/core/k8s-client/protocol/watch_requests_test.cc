#include "k8s-client/protocol/watch_requests.h"

#include <string>

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

namespace {

WatchTarget all(Kind kind) { return {.kind = kind, .ns = {}, .name = {}}; }

}  // namespace

TEST_CASE("every kind has its path") {
  const auto path = [](Kind kind, std::size_t version = 0) {
    const auto target = build_list(all(kind), version, "").target;
    return target.substr(0, target.find('?'));
  };
  CHECK(path(Kind::Pod) == "/api/v1/pods");
  CHECK(path(Kind::Node) == "/api/v1/nodes");
  CHECK(path(Kind::Namespace) == "/api/v1/namespaces");
  CHECK(path(Kind::ConfigMap) == "/api/v1/configmaps");
  CHECK(path(Kind::Job) == "/apis/batch/v1/jobs");
  CHECK(path(Kind::ReplicaSet) == "/apis/apps/v1/replicasets");
  CHECK(path(Kind::StatefulSet) == "/apis/apps/v1/statefulsets");
  CHECK(path(Kind::ResourceClaim, 0) == "/apis/resource.k8s.io/v1/resourceclaims");
  CHECK(path(Kind::ResourceClaim, 1) == "/apis/resource.k8s.io/v1beta2/resourceclaims");
  CHECK(path(Kind::ResourceSlice, 2) == "/apis/resource.k8s.io/v1beta1/resourceslices");
  CHECK(path(Kind::PodGroup, 0) == "/apis/scheduling.k8s.io/v1beta1/podgroups");
  CHECK(path(Kind::PodGroup, 1) == "/apis/scheduling.k8s.io/v1alpha3/podgroups");
  CHECK(path(Kind::PodGroup, 2) == "/apis/scheduling.k8s.io/v1alpha2/podgroups");
  CHECK(path(Kind::DeviceTaintRule, 1) == "/apis/resource.k8s.io/v1beta2/devicetaintrules");
  CHECK(path(Kind::DeviceTaintRule, 2) == "/apis/resource.k8s.io/v1alpha3/devicetaintrules");
}

TEST_CASE("every version has its name") {
  CHECK(api_version_of(Kind::Pod, 0) == "v1");
  CHECK(api_version_of(Kind::Job, 0) == "batch/v1");
  CHECK(api_version_of(Kind::ResourceSlice, 2) == "resource.k8s.io/v1beta1");
  CHECK(api_version_of(Kind::DeviceTaintRule, 0) == "resource.k8s.io/v1");
  CHECK(api_version_of(Kind::DeviceTaintRule, 2) == "resource.k8s.io/v1alpha3");
}

TEST_CASE("a list asks for pages of 500 without a version") {
  const auto first = build_list(all(Kind::Pod), 0, "");
  CHECK(first.method == Method::Get);
  CHECK(first.target == "/api/v1/pods?limit=500");
  CHECK(first.headers == std::vector<Header>{{"Accept", "application/json"}});
  CHECK(first.timeouts.total.has_value());
  CHECK(build_list(all(Kind::Pod), 0, "a+b/c=").target == "/api/v1/pods?limit=500&continue=a%2Bb%2Fc%3D");
}

TEST_CASE("a watch asks for bookmarks, ends after 5 to 10 minutes and has no total limit") {
  const auto watch = build_watch(all(Kind::Node), 0, "1332", 0.0);
  CHECK(watch.target == "/api/v1/nodes?watch=true&allowWatchBookmarks=true&resourceVersion=1332&timeoutSeconds=300");
  CHECK(watch.timeouts.idle == Seconds(90));
  CHECK_FALSE(watch.timeouts.total.has_value());
  CHECK(build_watch(all(Kind::Node), 0, "1", 0.999).target.ends_with("timeoutSeconds=599"));
}

TEST_CASE("a WatchList names the match, and the version only if there is one") {
  CHECK(build_watch_list(all(Kind::Pod), 0, "", 0.5).target ==
        "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
        "timeoutSeconds=450");
  CHECK(build_watch_list(all(Kind::Pod), 0, "77", 0.5).target.ends_with("&resourceVersion=77"));
}

TEST_CASE("owners are asked for as metadata only, except Jobs, of which the reconciler needs more") {
  const auto accept = [](const Request& request) { return request.headers.at(0).value; };
  CHECK(accept(build_list(all(Kind::Job), 0, "")) == "application/json");
  CHECK(accept(build_list(all(Kind::ReplicaSet), 0, "")) ==
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
  CHECK(accept(build_watch(all(Kind::ReplicaSet), 0, "1", 0.0)) ==
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  CHECK(accept(build_watch_list(all(Kind::StatefulSet), 0, "1", 0.0)) ==
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
}

TEST_CASE("protobuf is asked for where it can be read, with JSON as the second choice, and never of owners") {
  const auto accept = [](Kind kind, std::size_t version) {
    WatchTarget target = all(kind);
    target.wire = WireFormat::Protobuf;
    const auto list = build_list(target, version, "").headers.at(0).value;
    CHECK(build_check(target, version).headers.at(0).value == list);
    if (list.find("Partial") == std::string::npos) {
      CHECK(build_watch(target, version, "1", 0.0).headers.at(0).value == list);
      CHECK(build_watch_list(target, version, "", 0.0).headers.at(0).value == list);
    }
    return list;
  };
  constexpr auto kBoth = "application/vnd.kubernetes.protobuf,application/json";
  for (const auto kind : {Kind::Pod, Kind::ResourceClaim, Kind::ResourceSlice, Kind::Node, Kind::Namespace,
                          Kind::DeviceTaintRule, Kind::Job}) {
    CHECK(accept(kind, 0) == kBoth);
  }
  // Earlier versions number their fields differently.
  for (const auto version : {1U, 2U}) CHECK(accept(Kind::ResourceSlice, version) == "application/json");
  CHECK(accept(Kind::ReplicaSet, 0) == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
  CHECK(accept(Kind::ConfigMap, 0) == "application/json");
  CHECK(accept(Kind::Lease, 0) == "application/json");
}

TEST_CASE("one object is selected by name in its namespace") {
  const WatchTarget one{.kind = Kind::ConfigMap, .ns = "kube-system", .name = "device health"};
  CHECK(build_list(one, 0, "").target ==
        "/api/v1/namespaces/kube-system/configmaps?limit=500&fieldSelector=metadata.name%3Ddevice%20health");
  CHECK(build_watch(one, 0, "5", 0.0).target.ends_with("&fieldSelector=metadata.name%3Ddevice%20health"));
}

TEST_CASE("only the core group must be served") {
  for (const auto kind : {Kind::Pod, Kind::Node, Kind::Namespace, Kind::ConfigMap}) CHECK_FALSE(may_be_absent(kind));
  for (const auto kind : {Kind::ResourceClaim, Kind::ResourceSlice, Kind::DeviceTaintRule, Kind::Job, Kind::ReplicaSet,
                          Kind::StatefulSet, Kind::PodGroup}) {
    CHECK(may_be_absent(kind));
  }
  CHECK(version_count(Kind::Pod) == 1);
  CHECK(version_count(Kind::ResourceClaim) == 3);
}
