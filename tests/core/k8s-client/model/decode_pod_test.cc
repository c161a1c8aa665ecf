#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/rfc3339.h"
#include "k8s-client/model/decoder.h"
#include "tests/core/k8s-client/model/kept.h"

namespace {

using namespace dhc::k8s;
using Amounts = std::vector<ResourceAmount>;

constexpr std::string_view kMeta =
    R"("metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7","labels":{"a":"b"}})";

Pod read_pod(std::string_view spec, std::string_view status) {
  const auto text = fmt::format(R"({{{},"spec":{},"status":{}}})", kMeta, spec, status);
  auto read = Decoder(Kind::Pod, kKept).decode_object(text);
  REQUIRE_MESSAGE(read.has_value(), read.error().why);
  return std::get<Pod>(*std::move(read));
}

std::string why_bad(std::string_view spec, std::string_view status) {
  const auto read =
      Decoder(Kind::Pod, kKept).decode_object(fmt::format(R"({{{},"spec":{},"status":{}}})", kMeta, spec, status));
  return read.has_value() ? "" : read.error().why;
}

std::string container(std::string_view limits, std::string_view policy = "") {
  return fmt::format(R"({{"name":"c","restartPolicy":"{}","resources":{{"limits":{}}}}})", policy, limits);
}

std::string gpus(int count) { return fmt::format(R"({{"cpu":"1","memory":"1.5Gi","example.com/gpu":"{}"}})", count); }

TEST_CASE("A pod that cannot hold devices comes with its identity and version only") {
  Pod expected;
  expected.meta.ns = "ns";
  expected.meta.name = "n";
  expected.meta.uid = "u";
  expected.meta.resource_version = "7";
  const auto pod = read_pod(R"({"nodeName":"node-a","containers":[{"resources":{"limits":{"cpu":"500m"}}}]})",
                            R"({"phase":"Running","conditions":[{"type":"DisruptionTarget","status":"True"}]})");
  CHECK(pod == expected);
  CHECK_FALSE(is_kept_whole(pod));
}

TEST_CASE("The same pod is read in full once its status or a condition that is asked for says more") {
  CHECK(is_kept_whole(read_pod("{}", R"({"containerStatuses":[{"allocatedResourcesStatus":[{"name":"a.b/c"}]}]})")));
  CHECK(is_kept_whole(read_pod("{}", R"({"extendedResourceClaimStatus":{"resourceClaimName":"x"}})")));
  const auto noticed = read_pod("{}", R"({"phase":"Failed","conditions":[{"type":"Ready","status":"False"},
                                     {"type":"device-health.io/DeviceUnhealthy","status":"True"}]})");
  CHECK(is_kept_whole(noticed));
  CHECK(noticed.phase == PodPhase::Failed);
  CHECK(noticed.meta.labels.size() == 1);
  CHECK(noticed.conditions.size() == 1);
}

TEST_CASE(
    "Of a Job's pod every condition is kept, and the words of a kubelet that rejected it, and of others only ours") {
  constexpr std::string_view kText = R"({{"metadata":{{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7",
    "ownerReferences":[{{"apiVersion":"batch/v1","kind":"{}","name":"o","uid":"x","controller":true}}]}},
    "spec":{{"containers":[{}]}},"status":{{"phase":"Failed","reason":"{}","message":"no example.com/gpu",
    "conditions":[{{"type":"example.com/XidSeen","status":"True","reason":"r","message":"long words"}},
                  {{"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI"}}]}}}})";
  const auto read = [&](std::string_view kind, std::string_view reason) {
    return std::get<Pod>(
        Decoder(Kind::Pod, kKept).decode_object(fmt::format(kText, kind, container(gpus(1)), reason)).value());
  };
  const auto of_job = read("Job", "UnexpectedAdmissionError");
  REQUIRE(of_job.conditions.size() == 2);
  CHECK(of_job.conditions[0] == Condition{.type = "example.com/XidSeen", .status = "True"});
  CHECK(of_job.conditions[1].reason == "EvictionByEvictionAPI");
  CHECK(of_job.status_message == "no example.com/gpu");
  CHECK(read("Job", "Evicted").status_message.empty());
  const auto of_set = read("ReplicaSet", "UnexpectedAdmissionError");
  CHECK(of_set.conditions.size() == 1);
  CHECK(of_set.status_message.empty());
}

TEST_CASE("Of a pod the images of those containers are kept that ask for devices, whatever its status says") {
  const auto runs = [](std::string_view name, std::string_view image, std::string_view resources) {
    return fmt::format(R"({{"resources":{{{}}},"image":"{}","name":"{}"}})", resources, image, name);
  };
  const auto read = [](const std::string& containers) {
    return read_pod(fmt::format(R"({{"resourceClaims":[{{"name":"gpu"}}],"containers":[{}]}})", containers), "{}");
  };
  const std::string limits = R"("limits":{"a.b/c":"1"})";
  const std::string claims = R"("claims":[{"name":"gpu"}])";
  const auto pod = read(runs("b", "r/train:1", limits) + "," + runs("a", "r/serve:2", claims) + "," +
                        runs("c", "r/other:3", R"("limits":{"cpu":"1","a.b/c":"0"},"claims":[])"));
  REQUIRE(pod.images);
  CHECK(*pod.images == std::vector<ContainerImage>{{"a", "r/serve:2"}, {"b", "r/train:1"}});
  CHECK_FALSE(read(runs("c", "r/other:3", "")).images);
  CHECK(read(runs("c", std::string(512, 'x'), limits)).images);
  for (const auto& image : {std::string(513, 'x'), std::string("x\\ny"), std::string()}) {
    CHECK_FALSE(read(runs("c", image, limits)).images);
  }
  static_assert(sizeof(pod.images) == 8);
}

TEST_CASE("Requests are the limits of all containers together") {
  const auto spec =
      fmt::format(R"({{"containers":[{},{},{}]}})", container(gpus(1)), container(gpus(2)), container("null"));
  CHECK(read_pod(spec, "{}").requests == Amounts{{"example.com/gpu", 3}});
}

TEST_CASE("An init container counts if it needs more than the containers") {
  const auto two = container(gpus(2));
  const auto small = fmt::format(R"({{"containers":[{}],"initContainers":[{}]}})", two, container(gpus(1)));
  const auto large =
      fmt::format(R"({{"containers":[{}],"initContainers":[{},{}]}})", two, container(gpus(4)), container(gpus(3)));
  CHECK(read_pod(small, "{}").requests == Amounts{{"example.com/gpu", 2}});
  CHECK(read_pod(large, "{}").requests == Amounts{{"example.com/gpu", 4}});
}

TEST_CASE("A sidecar keeps its devices beside the containers and beside the init containers after it") {
  const auto sidecar = container(gpus(1), "Always");
  const auto beside = fmt::format(R"({{"containers":[{}],"initContainers":[{}]}})", container(gpus(2)), sidecar);
  const auto before =
      fmt::format(R"({{"containers":[{}],"initContainers":[{},{}]}})", container(gpus(1)), sidecar, container(gpus(4)));
  const auto after =
      fmt::format(R"({{"containers":[{}],"initContainers":[{},{}]}})", container(gpus(1)), container(gpus(4)), sidecar);
  CHECK(read_pod(beside, "{}").requests == Amounts{{"example.com/gpu", 3}});
  CHECK(read_pod(before, "{}").requests == Amounts{{"example.com/gpu", 5}});
  CHECK(read_pod(after, "{}").requests == Amounts{{"example.com/gpu", 4}});
}

TEST_CASE("A limit of zero asks for nothing, and a pod with no other holds no device") {
  CHECK_FALSE(is_kept_whole(read_pod(fmt::format(R"({{"containers":[{}]}})", container(gpus(0))), "{}")));
}

TEST_CASE("A resource amount that cannot be counted makes the pod bad") {
  const auto with = [](std::string_view amount) {
    return why_bad(fmt::format(R"({{"containers":[{}]}})", container(fmt::format(R"({{"a.b/c":{}}})", amount))), "{}");
  };
  const std::string why = "spec.containers[0].resources.limits: not a whole quantity";
  CHECK(with(R"("500m")") == why);
  CHECK(with(R"("-1")") == why);
  CHECK(with("-1") == why);
  CHECK(with(R"("many")") == why);
  CHECK(with(R"("9223372036854775807")").empty());
}

TEST_CASE("Amounts that add up to more than a number holds make the pod bad") {
  const auto most = container(R"({"a.b/c":"9223372036854775807"})");
  CHECK(why_bad(fmt::format(R"({{"containers":[{},{}]}})", most, most), "{}") ==
        "spec.containers[1]: resource amounts add up to more than 2^63-1");
  CHECK(why_bad(
            fmt::format(R"({{"containers":[{}],"initContainers":[{}]}})", most, container(R"({"a.b/c":1})", "Always")),
            "{}") == "spec: resource amounts add up to more than 2^63-1");
}

TEST_CASE("A claim is named by the spec, or by the status once it is made") {
  const auto* spec =
      R"({"resourceClaims":[{"name":"a","resourceClaimTemplateName":"t"},{"name":"b","resourceClaimName":"fixed"},
                         {"name":"c","resourceClaimTemplateName":"t"}]})";
  const auto pod =
      read_pod(spec, R"({"resourceClaimStatuses":[{"name":"c"},{"name":"a","resourceClaimName":"made"}]})");
  CHECK(pod.claims == std::vector<PodClaim>{{"a", "made"}, {"b", "fixed"}, {"c", ""}});
}

TEST_CASE("The claim behind an extended resource goes by its object's name") {
  CHECK(read_pod("{}", R"({"extendedResourceClaimStatus":{"resourceClaimName":"x","requestMappings":[{}]}})").claims ==
        std::vector<PodClaim>{{"x", "x"}});
}

std::string entry(std::string_view name, std::string_view id, std::string_view health) {
  return fmt::format(R"({{"name":"{}","resources":[{{"resourceID":"{}","health":"{}"}}]}})", name, id, health);
}

TEST_CASE("Entries of all containers are merged by name and sorted, whatever their order") {
  std::vector<std::string> entries = {entry("b", "1", "Healthy"), entry("a", "2", "Unhealthy"),
                                      entry("a", "1", "Healthy"), entry("b", "1", "Unhealthy")};
  std::ranges::sort(entries);
  const dhc::SlimVector<AllocatedResource> expected = {
      {"a", {{"1", Health::Healthy, ""}, {"2", Health::Unhealthy, ""}}}, {"b", {{"1", Health::Unhealthy, ""}}}};
  do {
    const auto status = fmt::format(
        R"({{"initContainerStatuses":[{{"allocatedResourcesStatus":[{}]}}],
            "containerStatuses":[{{"allocatedResourcesStatus":[{}]}},{{"allocatedResourcesStatus":[{}]}}],
            "ephemeralContainerStatuses":[{{"allocatedResourcesStatus":[{}]}}]}})",
        entries[0], entries[1], entries[2], entries[3]);
    CHECK(read_pod("{}", status).allocated == expected);
  } while (std::ranges::next_permutation(entries).found);
}

TEST_CASE("Of two reports about one device the worse counts: Unhealthy, then Unknown, then Healthy") {
  const auto merged = [](std::string_view one, std::string_view other) {
    const auto status = fmt::format(
        R"({{"containerStatuses":[{{"allocatedResourcesStatus":[{}]}},{{"allocatedResourcesStatus":[{}]}}]}})",
        entry("a", "1", one), entry("a", "1", other));
    return read_pod("{}", status).allocated.at(0).devices.at(0).health;
  };
  CHECK(merged("Healthy", "Unhealthy") == Health::Unhealthy);
  CHECK(merged("Unknown", "Unhealthy") == Health::Unhealthy);
  CHECK(merged("Unknown", "Healthy") == Health::Unknown);
  CHECK(merged("Healthy", "Healthy") == Health::Healthy);
}

TEST_CASE("A device counts the restarts of all containers that hold it, and a count that nobody can have is cut") {
  const auto container = [](std::string_view restarts, std::string_view entries) {
    return fmt::format(R"({{"name":"c","restartCount":{},"allocatedResourcesStatus":[{}]}})", restarts, entries);
  };
  const auto restarts = [&](std::string_view first, std::string_view second) {
    const auto status =
        fmt::format(R"({{"containerStatuses":[{},{},{}]}})", container(first, entry("a", "1", "Healthy")),
                    container(second, entry("a", "1", "Unhealthy")), container("100", entry("a", "2", "Healthy")));
    return read_pod("{}", status).allocated.at(0).devices.at(0).restarts;
  };
  CHECK(restarts("2", "3") == 5);
  CHECK(restarts("null", "3") == 3);
  CHECK(restarts("9223372036854775807", "9223372036854775807") == 2 * std::int64_t(2147483647));
  CHECK(restarts("-5", "1") == 1);
}

TEST_CASE("A device names the containers that hold it, each once and sorted, whichever reports the worse") {
  const auto container = [](std::string_view name, std::string_view entries) {
    return fmt::format(R"({{"name":"{}","allocatedResourcesStatus":[{}]}})", name, entries);
  };
  const auto status = fmt::format(R"({{"initContainerStatuses":[{}],"containerStatuses":[{},{}]}})",
                                  container("sidecar", entry("a", "1", "Healthy")),
                                  container("train", entry("a", "1", "Unhealthy") + "," + entry("a", "2", "Healthy") +
                                                         "," + entry("a", "1", "Unknown")),
                                  container("main", entry("a", "1", "Healthy")));
  const auto devices = read_pod("{}", status).allocated.at(0).devices;
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].health == Health::Unhealthy);
  CHECK(devices[0].containers == dhc::SlimVector<dhc::SharedText>{"main", "sidecar", "train"});
  CHECK(devices[1].containers == dhc::SlimVector<dhc::SharedText>{"train"});
}

TEST_CASE("Health that we do not know, or none, is Unknown") {
  for (const auto* health :
       {R"("health":"PermanentlyUnhealthy",)", R"("health":"healthy",)", R"("health":"",)", R"("health":null,)", ""}) {
    CAPTURE(health);
    const auto status = fmt::format(
        R"({{"containerStatuses":[{{"allocatedResourcesStatus":[{{"name":"a","resources":[{{{}"resourceID":"1"}}]}}]}}]}})",
        health);
    CHECK(read_pod("{}", status).allocated.at(0).devices.at(0).health == Health::Unknown);
  }
}

TEST_CASE("A report of the whole pod is not read, as in protobuf: no release has that field") {
  const auto read = read_pod("{}", fmt::format(R"({{"containerStatuses":[{{"allocatedResourcesStatus":[{}]}}],
                                      "allocatedResourcesStatus":[{}]}})",
                                               entry("a", "1", "Healthy"), entry("a", "1", "Unhealthy")));
  CHECK(read.allocated == std::vector<AllocatedResource>{{"a", {{"1", Health::Healthy, ""}}}});
  CHECK_FALSE(is_kept_whole(read_pod("{}", R"({"allocatedResourcesStatus":[{"name":"a.b/c"}]})")));
}

std::string message_of_length(const std::string& character, std::size_t count) {
  std::string message;
  for (std::size_t i = 0; i < count; ++i) message += character;
  const auto status = fmt::format(
      R"({{"containerStatuses":[{{"allocatedResourcesStatus":[{{"name":"a","resources":[{{"resourceID":"1","message":"{}"}}]}}]}}]}})",
      message);
  return read_pod("{}", status).allocated.at(0).devices.at(0).message;
}

TEST_CASE("A message is cut to 1,024 characters, never inside one") {
  CHECK(message_of_length("x", 1024).size() == 1024);
  CHECK(message_of_length("x", 1025).size() == 1024);
  CHECK(message_of_length("\xe2\x82\xac", 1024).size() == 3 * 1024);
  CHECK(message_of_length("\xe2\x82\xac", 5000).size() == 3 * 1024);
  CHECK(message_of_length("\xf0\x9f\x94\xa5", 1025).ends_with("\xf0\x9f\x94\xa5"));
}

TEST_CASE("Devices without a resource ID are kept, and entries without a name make the pod bad") {
  const auto nameless = read_pod(
      "{}",
      R"({"containerStatuses":[{"allocatedResourcesStatus":[{"name":"a","resources":[{"health":"Unhealthy"}]}]}]})");
  CHECK(nameless.allocated == std::vector<AllocatedResource>{{"a", {{"", Health::Unhealthy, ""}}}});
  CHECK(why_bad("{}", R"({"containerStatuses":[{},{"allocatedResourcesStatus":[{"resources":[]}]}]})") ==
        "status.containerStatuses[1].allocatedResourcesStatus[0].name: missing");
}

TEST_CASE("An object without the identity of its kind is bad") {
  const auto why = [](Kind kind, const char* meta) {
    const auto read = Decoder(kind, kKept).decode_object(std::string(R"({"metadata":)") + meta + "}");
    return read.has_value() ? "" : read.error().why;
  };
  CHECK(why(Kind::Pod, R"({"name":"n","uid":"u","resourceVersion":"7"})") == "metadata.namespace: missing");
  CHECK(why(Kind::Pod, R"({"namespace":"x","uid":"u","resourceVersion":"7"})") == "metadata.name: missing");
  CHECK(why(Kind::Pod, R"({"namespace":"x","name":"n","uid":"","resourceVersion":"7"})") == "metadata.uid: missing");
  CHECK(why(Kind::Pod, R"({"namespace":"x","name":"n","uid":"u"})") == "metadata.resourceVersion: missing");
  CHECK(why(Kind::Node, R"({"name":"n","uid":"u","resourceVersion":"7"})").empty());
}

TEST_CASE("Only the owner that controls is kept, and only annotations that are asked for and the mirror mark") {
  const auto read = Decoder(Kind::Job, kKept)
                        .decode_object(R"({"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7",
    "ownerReferences":[{"kind":"A","uid":"1"},{"kind":"B","uid":"2","controller":true,"name":"b","apiVersion":"v"},{"kind":"C","controller":false}],
    "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","kubernetes.io/config.mirror":"x","device-health.io/opt-out":"true"}}})");
  REQUIRE(read.has_value());
  CHECK(meta_of(*read).controller == OwnerRef{"v", "B", "b", "2"});
  CHECK(meta_of(*read).annotations ==
        StringMap{{"device-health.io/opt-out", "true"}, {"kubernetes.io/config.mirror", "x"}});
}

TEST_CASE("Who asks for nothing gets none of what others may fill, and another prefix gets its own") {
  const std::string_view text =
      R"({"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7","annotations":{"a.io/x":"1","b.io/y":"2"}},
    "status":{"containerStatuses":[{"allocatedResourcesStatus":[{"name":"a.b/c"}]}],"conditions":[{"type":"a.io/X","status":"True"},{"type":"b.io/Y","status":"True"}]}})";
  const auto read = [&](KeptFields kept) {
    return std::get<Pod>(Decoder(Kind::Pod, kept).decode_object(text).value());
  };
  const auto none = read({});
  CHECK(none.meta.annotations.empty());
  CHECK(none.conditions.empty());
  CHECK_FALSE(none.has_kept_condition);
  const auto some = read({.prefix = "b.io/"});
  CHECK(some.meta.annotations == StringMap{{"b.io/y", "2"}});
  REQUIRE(some.conditions.size() == 1);
  CHECK(some.conditions[0].type == "b.io/Y");
  CHECK(some.has_kept_condition);
}

TEST_CASE("A pod that mounts the kubelet's plugin folders from the host is a driver") {
  const auto is_driver = [](std::string path) {
    return read_pod(R"({"volumes":[{"name":"a","emptyDir":{}},{"name":"b","hostPath":{"path":")" + path +
                        R"("}}],"containers":[{"resources":{"limits":{"example.com/gpu":"1"}}}]})",
                    "{}")
        .kubelet_plugin;
  };
  CHECK(is_driver("/var/lib/kubelet/device-plugins"));
  CHECK(is_driver("/var/lib/kubelet/plugins_registry/"));
  CHECK(!is_driver("/var/lib/kubelet/pods"));
  CHECK(!is_driver("/srv/plugins"));
}

TEST_CASE("A pod whose volume shows its program an annotation that is kept is read in full, with a device or without") {
  const auto reads = [](std::string_view volume) {
    return read_pod(fmt::format(R"({{"volumes":[{{"name":"a","emptyDir":{{}}}},{}]}})", volume), "{}");
  };
  const auto downward = [](std::string_view path) {
    return fmt::format(
        R"({{"name":"b","downwardAPI":{{"items":[{{"path":"x","resourceFieldRef":{{"resource":"limits.cpu"}}}},)"
        R"({{"path":"notice","fieldRef":{{"fieldPath":"{}"}}}}]}}}})",
        path);
  };
  const auto told = reads(downward("metadata.annotations['device-health.io/notice']"));
  CHECK(told.shows_kept_annotation);
  CHECK(is_kept_whole(told));
  CHECK_FALSE(asks_for_devices(told));
  CHECK(told.meta.labels.size() == 1);
  CHECK(reads(R"({"name":"b","projected":{"sources":[{"secret":{}},{"downwardAPI":{"items":[{"fieldRef":)"
              R"({"fieldPath":"metadata.annotations['device-health.io/notice']"}}]}}]}})")
            .shows_kept_annotation);
  for (const auto* path : {"metadata.name", "metadata.annotations", "metadata.annotations['example.com/notice']",
                           "metadata.labels['device-health.io/notice']"}) {
    CAPTURE(path);
    CHECK_FALSE(is_kept_whole(reads(downward(path))));
  }
  CHECK_FALSE(is_kept_whole(reads(downward(std::string(2000, 'a')))));
}

TEST_CASE("Of AMD's metrics exporter as much is kept as of a driver, and it is none") {
  for (const std::string path : {"/var/lib/amd-metrics-exporter", "/var/lib/amd-metrics-exporter/"}) {
    const auto pod = read_pod(R"({"nodeName":"node-a","volumes":[{"hostPath":{"path":")" + path + R"("}}]})",
                              R"({"containerStatuses":[{"state":{"running":{"startedAt":"2026-11-22T08:00:07Z"}}}]})");
    CHECK(pod.plugin_folders == dhc::SlimVector<dhc::SharedText>{"amd-metrics-exporter"});
    CHECK_FALSE(pod.kubelet_plugin);
    CHECK(pod.last_start == dhc::parse_rfc3339("2026-11-22T08:00:07Z"));
    CHECK(pod.node_name == "node-a");
  }
  CHECK(read_pod(R"({"volumes":[{"hostPath":{"path":"/var/lib/amd-metrics-exporter-2"}}]})", "{}")
            .plugin_folders.empty());
}

TEST_CASE("Of a driver's pod its folders are kept, and when its containers last began or ended") {
  const auto pod = read_pod(R"({"nodeName":"node-a","volumes":[
      {"hostPath":{"path":"/var/lib/kubelet/plugins_registry/"}},{"hostPath":{"path":"/var/lib/kubelet/plugins"}},
      {"hostPath":{"path":"/var/lib/kubelet/plugins/gpu.example.com/sockets"}},
      {"hostPath":{"path":"/var/lib/kubelet/plugins//"}}]})",
                            R"({"phase":"Running","containerStatuses":[
      {"state":{"running":{"startedAt":"2026-11-22T08:00:07Z"}},
       "lastState":{"terminated":{"exitCode":1,"startedAt":"2026-11-22T07:00:00Z","finishedAt":"2026-11-22T08:00:05Z"}}},
      {"state":{"waiting":{}},"lastState":{"terminated":{"finishedAt":"2026-11-22T08:00:06Z"}}}]})");
  CHECK(pod.kubelet_plugin);
  CHECK(pod.plugin_folders ==
        dhc::SlimVector<dhc::SharedText>{"plugins", "plugins/gpu.example.com", "plugins_registry"});
  CHECK(pod.last_start == dhc::parse_rfc3339("2026-11-22T08:00:07Z"));
  CHECK(pod.node_name == "node-a");
  CHECK(pod.phase == PodPhase::Running);
  CHECK_FALSE(is_kept_whole(pod));
  const auto other =
      read_pod("{}", R"({"containerStatuses":[{"state":{"running":{"startedAt":"2026-11-22T08:00:07Z"}}}]})");
  CHECK_FALSE(other.last_start);
}

TEST_CASE("Of a driver's pod it is kept whether it is on its way out, and of which release it is") {
  constexpr std::string_view kText = R"({"metadata":{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7",
    "creationTimestamp":"2026-11-22T08:00:00Z","deletionTimestamp":"2026-11-22T09:00:30Z","deletionGracePeriodSeconds":30,
    "labels":{"app":"driver","controller-revision-hash":"6d5f","pod-template-generation":"2"}},
    "spec":{"volumes":[{"hostPath":{"path":"/var/lib/kubelet/plugins"}}]},"status":{"phase":"Running"}})";
  const auto pod = std::get<Pod>(Decoder(Kind::Pod, kKept).decode_object(kText).value());
  CHECK(pod.meta.labels == StringMap{{"controller-revision-hash", "6d5f"}, {"pod-template-generation", "2"}});
  CHECK(pod.meta.deletion == dhc::parse_rfc3339("2026-11-22T09:00:30Z"));
  CHECK(pod.meta.deletion_grace_seconds == 30);
}

TEST_CASE("Of a Job's pod that has failed it is kept when the last of its containers ended") {
  constexpr std::string_view kEnded = R"({{"metadata":{{"namespace":"ns","name":"n","uid":"u","resourceVersion":"7",
    "ownerReferences":[{{"apiVersion":"batch/v1","kind":"{}","name":"o","uid":"x","controller":true}}]}},
    "spec":{{"containers":[{}]}},"status":{{"phase":"{}","containerStatuses":[
    {{"state":{{"terminated":{{"exitCode":1,"finishedAt":"2026-11-22T08:00:05Z"}}}}}},
    {{"state":{{"terminated":{{"exitCode":0,"finishedAt":"2026-11-22T08:00:04Z"}}}}}}]}}}})";
  const auto read_with = [&](std::string_view phase, std::string_view owner) {
    return std::get<Pod>(
        Decoder(Kind::Pod, kKept).decode_object(fmt::format(kEnded, owner, container(gpus(1)), phase)).value());
  };
  CHECK(read_with("Failed", "Job").last_start == dhc::parse_rfc3339("2026-11-22T08:00:05Z"));
  CHECK_FALSE(read_with("Running", "Job").last_start);
  CHECK_FALSE(read_with("Failed", "ReplicaSet").last_start);
}

}  // namespace
