// Messages in forms that the API server does not write today, and that every reader of protobuf takes: fields that come
// twice, numbers in one packed field, text that is no UTF-8.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "k8s-client/model/proto_decoder.h"
#include "tests/support/core/proto_writing.h"

namespace {

using namespace dhc::k8s;
using dhc::test::enveloped;
using dhc::test::field;
using dhc::test::number;

const std::string kMetaMessage = field(1, field(1, "web") + field(3, "team-a") + field(5, "u-1") + field(6, "7"));

template <class Record>
Record read(Kind kind, std::string_view version, const std::string& fields) {
  const auto object = ProtoDecoder(kind).decode_object(enveloped(version, to_string(kind), kMetaMessage + fields));
  REQUIRE_MESSAGE(object.has_value(), object.error().why);
  return std::get<Record>(*object);
}

Pod read_pod(const std::string& fields) {
  // A claim, because of a pod without one only the identity is kept.
  return read<Pod>(Kind::Pod, "v1", field(2, field(39, field(1, "gpu"))) + fields);
}

std::string entry(std::string_view key, std::string_view value) { return field(1, key) + field(2, value); }

TEST_CASE("Of a name and a number that come twice in protobuf the last counts") {
  const auto pod = read_pod(field(2, field(10, "node-a") + field(10, "node-b") + number(4, 30) + number(4, 60)));
  CHECK(pod.node_name == "node-b");
  CHECK(pod.grace_period_seconds == 60);
  CHECK(read_pod(field(1, field(1, "first") + field(1, "second"))).meta.name == "second");
}

TEST_CASE("Parts of one message that come apart in protobuf are put together") {
  const auto pod = read_pod(field(1, field(11, entry("app", "x"))) + field(2, field(7, entry("zone", "a"))) +
                            field(2, field(10, "node-b")) + field(2, field(22, field(1, "gpu") + field(2, "Exists"))));
  CHECK(pod.meta.name == "web");
  CHECK(find(pod.meta.labels, "app") == "x");
  CHECK(pod.node_name == "node-b");
  CHECK(pod.claims.size() == 1);
  CHECK(find(pod.scheduling->node_selector, "zone") == "a");
  CHECK(pod.scheduling->tolerations.size() == 1);

  const auto node = read<Node>(Kind::Node, "v1",
                               field(3, field(1, entry("example.com/gpu", field(1, "8")))) +
                                   field(3, field(2, entry("example.com/gpu", field(1, "7")))) +
                                   field(3, field(7, field(3, "boot-1"))) + field(3, field(7, field(7, "v1.37.1"))));
  CHECK(node.capacity.size() == 1);
  CHECK(node.allocatable.size() == 1);
  CHECK(node.boot_id == "boot-1");
  CHECK(node.kubelet_version == "v1.37.1");

  const auto slice = read<ResourceSlice>(Kind::ResourceSlice, "resource.k8s.io/v1",
                                         field(2, field(1, "gpu.example.com") + field(2, number(2, 5)) +
                                                      field(2, number(3, 2)) + field(2, field(1, "node-a"))));
  CHECK(slice.generation == 5);
  CHECK(slice.pool_slices == 2);
  CHECK(slice.pool == "node-a");
}

TEST_CASE("Parts of a claim and of a Job that come apart in protobuf are put together") {
  const auto request = [](std::string_view name) { return field(2, field(1, field(1, field(1, name)))); };
  const auto device = field(1, "gpu.example.com") + field(2, "node-a") + field(3, "gpu-0");
  const auto network = field(6, field(1, "eth0")) + field(6, field(2, "10.0.0.1")) + field(6, field(3, "aa:bb"));
  const auto claim = read<ResourceClaim>(Kind::ResourceClaim, "resource.k8s.io/v1",
                                         request("a") + field(3, field(4, device + network)) + request("b"));
  REQUIRE(claim.requests->size() == 2);
  CHECK(claim.requests->back().name == "b");
  REQUIRE(claim.devices.size() == 1);
  CHECK(claim.devices.front().network == "eth0 10.0.0.1 aa:bb");

  const auto codes = field(2, field(1, "main") + field(2, "In") + number(3, 1)) + field(2, field(3, "\x02\x89\x01"));
  const auto job = read<Job>(Kind::Job, "batch/v1", field(2, field(11, field(1, field(1, "FailJob") + codes))));
  REQUIRE(job.failure_rules.size() == 1);
  REQUIRE(job.failure_rules.front().on_exit_codes.has_value());
  CHECK(job.failure_rules.front().on_exit_codes->container == "main");
  CHECK(job.failure_rules.front().on_exit_codes->in);
  CHECK(job.failure_rules.front().on_exit_codes->values == std::vector<std::int64_t>{1, 2, 137});
}

// Nodes' resources are written by kubelets, and the API server does not look at their names.
TEST_CASE("Keys that are no UTF-8 are what the API server writes in JSON, sorted, and each once") {
  const auto node = read<Node>(
      Kind::Node, "v1",
      field(1, field(11, entry("a\x80", "1")) + field(11, entry("a\xC3\xA9", "2")) + field(11, entry("a\xFE", "3"))) +
          field(3, field(1, entry("x/\x80", field(1, "1"))) + field(1, entry("x/\xC3\xA9", field(1, "2"))) +
                       field(1, entry("x/\xFE", field(1, "3")))));
  CHECK(node.meta.labels == StringMap{{"a\xC3\xA9", "2"}, {"a\xEF\xBF\xBD", "3"}});
  REQUIRE(node.capacity.size() == 2);
  CHECK(node.capacity.front().resource == "x/\xC3\xA9");
  CHECK(node.capacity.back().resource == "x/\xEF\xBF\xBD");
  CHECK(node.capacity.back().amount == 3);
}

}  // namespace
