#include "cli/plugin/bundle.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "cli/plugin/own_pods.h"

namespace dhc::test {

TEST_CASE("what may hold a secret is left out: values of variables, others' annotations, managed fields") {
  const auto json = nlohmann::ordered_json::parse(
      R"({"items":[{"metadata":{"name":"p","managedFields":[{"manager":"x"}],)"
      R"("annotations":{"device-health.io/opt-out":"true","kubectl.kubernetes.io/last-applied-configuration":"s3cret"}},)"
      R"("spec":{"containers":[{"env":[{"name":"TOKEN","value":"s3cret"},{"name":"K","valueFrom":{"secretKeyRef":{"name":"s3cret"}}}],)"
      R"("envFrom":[{"secretRef":{"name":"s3cret"}}],"args":["run"]}]}}]})");
  const auto kept = cli::redacted(json);
  CHECK(kept.dump().find("s3cret") == std::string::npos);
  const auto& pod = kept["items"][0];
  CHECK(pod["metadata"]["annotations"].dump() == R"({"device-health.io/opt-out":"true"})");
  CHECK(pod["spec"]["containers"][0].dump() ==
        R"({"env":[{"name":"TOKEN","value":"<redacted>"},{"name":"K","value":"<redacted>"}],"args":["run"]})");
}

TEST_CASE("of a URL in a configuration the host is kept, and nothing that may be a token") {
  const auto kept = [](const std::string& text) {
    const nlohmann::ordered_json map = {{"kind", "ConfigMap"}, {"data", {{"limits.yaml", text}}}};
    return cli::redacted(map)["data"]["limits.yaml"].get<std::string>();
  };
  CHECK(kept("a: 1\n  webhook: {url: https://h.example.com:8443/s3cret?s3cret=1, perMinute: 30}\nb: 2\n") ==
        "a: 1\n  webhook: {url: https://h.example.com:8443/<redacted>, perMinute: 30}\nb: 2\n");
  CHECK(kept("url: \"http://h/s3cret\"\nurl: 'h.example.com/s3cret'\n") ==
        "url: \"http://h/<redacted>\"\nurl: 'h.example.com/<redacted>'\n");
  CHECK(kept("url: >-\n  https://h/s3cret\nx: y") == "url: >-\n  https://h/<redacted>\nx: y");
  CHECK(kept(R"({"webhook":{"url":"https://h?s3cret"}})") == R"({"webhook":{"url":"https://h/<redacted>"}})");
  CHECK(kept(R"({"webhook":{"url": "h/s3cret","source":"/x"}})") ==
        R"({"webhook":{"url": "h/<redacted>","source":"/x"}})");
  CHECK(kept("url: https://h\nurl:") == "url: https://h\nurl:");
  CHECK(kept("# see https://docs/x\nmessage: '(?i)a/b'\n") == "# see https://docs/<redacted>\nmessage: '(?i)a/b'\n");
}

TEST_CASE("the archive is one that tar reads: header, sum, padding, two empty blocks") {
  const auto tar = cli::tar_of("bundle", {{.name = "a.txt", .text = "hello\n"}, {.name = "b.txt", .text = ""}},
                               parse_rfc3339("2026-11-20T12:00:00Z").value());
  REQUIRE(tar.size() == 512 * 5);
  CHECK(tar.substr(0, 12) == "bundle/a.txt");
  CHECK(tar.substr(124, 11) == "00000000006");
  CHECK(tar.substr(257, 5) == "ustar");
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0x20U : static_cast<unsigned char>(tar[i]);
  CHECK(std::stoul(tar.substr(148, 6), nullptr, 8) == sum);
  CHECK(tar.substr(512, 6) == "hello\n");
  CHECK(tar.substr(1024, 12) == "bundle/b.txt");
}

TEST_CASE("of nodes only what scheduling and health depend on is kept") {
  const auto list = nlohmann::ordered_json::parse(
      R"({"items":[{"metadata":{"name":"n","uid":"u","annotations":{"a":"s3cret"}},"spec":{"providerID":"s3cret","unschedulable":true},)"
      R"("status":{"capacity":{"example.com/gpu":"4"},"addresses":[{"address":"10.0.0.1"}]}}]})");
  CHECK(cli::node_summary(list).dump() ==
        R"([{"name":"n","uid":"u","unschedulable":true,"capacity":{"example.com/gpu":"4"}}])");
}

TEST_CASE("who may read a namespace alone sees our condition on its pods, and our Events") {
  const auto pods = cli::own_pods(
      R"({"items":[{"metadata":{"name":"train-0"},"spec":{"nodeName":"node-a"},"status":{"conditions":[)"
      R"({"type":"Ready","status":"True"},{"type":"device-health.io/DeviceUnhealthy","status":"True","reason":"DeviceUnhealthy",)"
      R"("message":"gpu-0 is bad; next: eviction, due at 2026-11-20T12:05:00Z","lastTransitionTime":"2026-11-20T12:00:00Z"}]}},)"
      R"({"metadata":{"name":"web"},"status":{}}]})");
  REQUIRE(pods);
  REQUIRE(pods->size() == 1);
  CHECK(cli::table_of(cli::own_pods_lines(*pods, parse_rfc3339("2026-11-20T12:04:12Z").value())) ==
        "POD      NODE    DEVICE UNHEALTHY  FOR    REASON           MESSAGE\n"
        "train-0  node-a  True              4m12s  DeviceUnhealthy  gpu-0 is bad; next: eviction, due at "
        "2026-11-20T12:05:00Z\n");
  const auto events = cli::own_events(
      R"({"items":[{"reportingComponent":"kubelet","reason":"Pulled"},{"reportingComponent":"device-health.io/controller",)"
      R"("type":"Warning","reason":"DeviceUnhealthy","message":"gpu-0","eventTime":"2026-11-20T12:01:00.000000Z"}]})");
  CHECK(*events == std::vector<std::string>{"2026-11-20T12:01:00.000000Z  Warning  DeviceUnhealthy: gpu-0"});
  CHECK_FALSE(cli::own_pods("nonsense"));
}

}  // namespace dhc::test
