#include "k8s-client/protocol/watch_requests.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "k8s-client/model/proto_decoder.h"

namespace dhc::k8s {
namespace {

using std::string_view;

constexpr auto kPageSize = 500;
constexpr Millis kCheckTotal = Seconds(30);
constexpr double kMinWatchSeconds = 300;
constexpr double kWatchSecondsSpread = 300;

/// Where a kind is served.
struct Resource {
  std::span<const string_view> roots;  ///< One a version, newest first.
  string_view plural;
  bool metadata_only = false;
};

constexpr std::array<string_view, 1> kCore = {"/api/v1"};
constexpr std::array<string_view, 1> kBatch = {"/apis/batch/v1"};
constexpr std::array<string_view, 1> kApps = {"/apis/apps/v1"};
constexpr std::array<string_view, 1> kPolicy = {"/apis/policy/v1"};
constexpr std::array<string_view, 1> kCoordination = {"/apis/coordination.k8s.io/v1"};
// v1 since 1.34; v1beta2 1.33, v1beta1 1.32. **Source:** KEP-4381.
constexpr std::array<string_view, 3> kDra = {"/apis/resource.k8s.io/v1", "/apis/resource.k8s.io/v1beta2",
                                             "/apis/resource.k8s.io/v1beta1"};
// By gate from 1.33 (v1alpha3) and 1.36 (v1beta2) on, by default since 1.37 (v1); never in v1beta1.
// **Source:** KEP-5055.
constexpr std::array<string_view, 3> kTaintRules = {"/apis/resource.k8s.io/v1", "/apis/resource.k8s.io/v1beta2",
                                                    "/apis/resource.k8s.io/v1alpha3"};

// By gate: v1alpha2 in 1.36, v1alpha3 and v1beta1 in 1.37. **Source:** KEP-5832.
constexpr std::array<string_view, 3> kScheduling = {
    "/apis/scheduling.k8s.io/v1beta1", "/apis/scheduling.k8s.io/v1alpha3", "/apis/scheduling.k8s.io/v1alpha2"};

Resource resource_of(Kind kind) {
  switch (kind) {
    case Kind::Pod:
      return {kCore, "pods"};
    case Kind::ResourceClaim:
      return {kDra, "resourceclaims"};
    case Kind::ResourceSlice:
      return {kDra, "resourceslices"};
    case Kind::Node:
      return {kCore, "nodes"};
    case Kind::Namespace:
      return {kCore, "namespaces"};
    case Kind::DeviceTaintRule:
      return {kTaintRules, "devicetaintrules"};
    case Kind::Job:
      return {kBatch, "jobs"};
    case Kind::ReplicaSet:
      return {kApps, "replicasets", true};
    case Kind::StatefulSet:
      return {kApps, "statefulsets", true};
    case Kind::PodDisruptionBudget:
      return {kPolicy, "poddisruptionbudgets"};
    case Kind::PodGroup:
      return {kScheduling, "podgroups"};
    case Kind::ConfigMap:
      return {kCore, "configmaps"};
    case Kind::Lease:
      return {kCoordination, "leases"};
  }
  return {kCore, "pods"};
}

/// Where the version is served; a number beyond the last means the last.
string_view root_of(const Resource& resource, std::size_t version) {
  return resource.roots[std::min(version, resource.roots.size() - 1)];
}

std::string path_of(const WatchTarget& target, std::size_t version) {
  const auto resource = resource_of(target.kind);
  const auto root = root_of(resource, version);
  if (target.ns.empty()) return fmt::format("{}/{}", root, resource.plural);
  return fmt::format("{}/namespaces/{}/{}", root, percent_encode(target.ns), resource.plural);
}

/// The selector, ready to be put at the end of a query.
std::string selector_of(const WatchTarget& target) {
  if (target.name.empty()) return {};
  return "&fieldSelector=" + percent_encode("metadata.name=" + target.name);
}

std::string accept_of(const WatchTarget& target, std::size_t version, string_view partial) {
  // No fallback to the whole object: it would be read as metadata anyway, at many times the bytes.
  if (resource_of(target.kind).metadata_only) return fmt::format("{};as={};g=meta.k8s.io;v=v1", kJson, partial);
  if (!asks_protobuf(target, version)) return std::string(kJson);
  return fmt::format("{},{}", kProtobuf, kJson);
}

Request get(const WatchTarget& target, std::size_t version, const std::string& query, string_view partial) {
  Request request;
  request.target = fmt::format("{}?{}{}", path_of(target, version), query, selector_of(target));
  request.headers.push_back({"Accept", accept_of(target, version, partial)});
  return request;
}

Request streamed(Request request) {
  request.timeouts.idle = kWatchIdle;
  request.timeouts.total = std::nullopt;
  return request;
}

int watch_seconds(double chance) {
  return static_cast<int>(kMinWatchSeconds + std::clamp(chance, 0.0, 1.0) * kWatchSecondsSpread);
}

}  // namespace

std::size_t version_count(Kind kind) { return resource_of(kind).roots.size(); }

string_view api_version_of(Kind kind, std::size_t version) {
  const auto root = root_of(resource_of(kind), version);
  const string_view prefix = root.starts_with("/apis/") ? "/apis/" : "/api/";
  return root.substr(prefix.size());
}

bool asks_protobuf(const WatchTarget& target, std::size_t version) {
  return target.wire == WireFormat::Protobuf && reads_protobuf(target.kind, api_version_of(target.kind, version));
}

bool may_be_absent(Kind kind) { return resource_of(kind).roots.front() != kCore.front(); }

Request build_list(const WatchTarget& target, std::size_t version, string_view continue_token) {
  auto query = fmt::format("limit={}", kPageSize);
  if (!continue_token.empty()) query += "&continue=" + percent_encode(continue_token);
  auto request = get(target, version, query, "PartialObjectMetadataList");
  request.timeouts.total = kListTotal;
  return request;
}

Request build_check(const WatchTarget& target, std::size_t version) {
  auto request = get(target, version, "limit=1", "PartialObjectMetadataList");
  request.timeouts.total = kCheckTotal;
  return request;
}

Request build_watch(const WatchTarget& target, std::size_t version, string_view resource_version, double chance) {
  const auto query = fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                                 percent_encode(resource_version), watch_seconds(chance));
  return streamed(get(target, version, query, "PartialObjectMetadata"));
}

Request build_watch_list(const WatchTarget& target, std::size_t version, string_view resource_version, double chance) {
  auto query = fmt::format(
      "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds={}",
      watch_seconds(chance));
  if (!resource_version.empty()) query += "&resourceVersion=" + percent_encode(resource_version);
  return streamed(get(target, version, query, "PartialObjectMetadata"));
}

}  // namespace dhc::k8s
