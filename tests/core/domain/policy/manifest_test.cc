#include "domain/policy/manifest.h"

#include <string>

#include <doctest/doctest.h>

using dhc::PackedConfig;

namespace {
const std::string kPolicy =
    "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: p}\nspec: {match: {}}\n";

std::string map_of(const std::string& name, const std::string& key, const std::string& line) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n  " + key + ": |\n    " + line + "\n";
}

std::string object(const std::string& kind) {
  return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: x}\nspec: {replicas: 2}\n";
}

std::optional<PackedConfig> unpack(const std::string& text) {
  return dhc::unpack_config({.name = "f.yaml", .text = text});
}

const std::string kPolicies = map_of("p", "a.yaml", "kind: DeviceHealthPolicy");
}  // namespace

TEST_CASE("a manifest of ConfigMaps holds one file for each key, and every mistake names file, ConfigMap and key") {
  const std::string manifest =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: policies, namespace: dhc}\ndata:\n  a.yaml: |\n    " +
      std::string("kind: x\n    spec: {}\n  notes.txt: hello\n---\n");
  const auto found = unpack(manifest);
  REQUIRE(found.has_value());
  REQUIRE(found->files.size() == 1);
  CHECK(found->files.front().name == "f.yaml, configmap dhc/policies, key a.yaml");
  CHECK(found->files.front().text == "kind: x\nspec: {}\n");
  REQUIRE(found->mistakes.size() == 1);
  CHECK(found->mistakes.front().file == "f.yaml, configmap dhc/policies, key notes.txt");
}

TEST_CASE("a text of our own documents alone, of nothing or of no YAML is a configuration itself") {
  CHECK_FALSE(unpack(kPolicy).has_value());
  CHECK_FALSE(unpack(kPolicy + "---\n" + kPolicy).has_value());
  CHECK_FALSE(unpack("").has_value());
  CHECK_FALSE(unpack("{").has_value());
  CHECK_FALSE(unpack("apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolcy\n").has_value());
  CHECK_FALSE(unpack("match: {}\n").has_value());
}

TEST_CASE("among objects of a cluster the ConfigMap with policies is found, and the others are counted by kind") {
  const auto found = unpack(object("Deployment") + "---\n" + object("Role") + "---\n" + kPolicies + "---\n" +
                            object("Role") + "---\n" + map_of("dashboard", "d.json", "{}") + "---\n" +
                            map_of("other", "values.yaml", "kind: Something"));
  REQUIRE(found.has_value());
  CHECK(found->mistakes.empty());
  REQUIRE(found->files.size() == 1);
  CHECK(found->files.front().name == "f.yaml, configmap p, key a.yaml");
  CHECK(found->skipped == decltype(found->skipped){{"ConfigMap", 2}, {"Deployment", 1}, {"Role", 2}});
}

TEST_CASE("policies in JSON are found among other objects, and words of ours under a key that is no file are not") {
  const auto json = map_of("p", "a.yaml", R"({"apiVersion":"device-health.io/v1alpha1","kind":"DeviceHealthPolicy"})");
  const auto dashboard = map_of("d", "d.json", R"({"title":"DeviceHealthPolicy"})");
  const auto found = unpack(object("Role") + "---\n" + json + "---\n" + dashboard);
  REQUIRE(found.has_value());
  CHECK(found->files.size() == 1);
  CHECK(found->skipped == decltype(found->skipped){{"ConfigMap", 1}, {"Role", 1}});
}

TEST_CASE("a list as kubectl prints it is read item by item") {
  const auto found = unpack(
      "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n- apiVersion: v1\n  kind: ConfigMap\n"
      "  metadata: {name: p}\n  data: {a.yaml: 'kind: DeviceHealthPolicy'}\n");
  REQUIRE(found.has_value());
  CHECK(found->files.size() == 1);
  CHECK(found->skipped == decltype(found->skipped){{"Secret", 1}});
}

TEST_CASE("objects without any policies among them are a mistake, and so is a bare document of ours among them") {
  const auto none = unpack(object("Deployment") + "---\n" + map_of("d", "d.json", "{}"));
  REQUIRE(none.has_value());
  REQUIRE(none->mistakes.size() == 1);
  CHECK(none->mistakes.front().message == "none of 2 objects is a ConfigMap with policies");

  const auto bare = unpack(object("Deployment") + "---\n" + kPolicy);
  REQUIRE(bare.has_value());
  REQUIRE(bare->mistakes.size() == 1);
  CHECK(bare->mistakes.front().message.starts_with("a document of the configuration stands among objects"));
  CHECK(bare->mistakes.front().line == 6);
}

TEST_CASE("a ConfigMap without data, or with something else than texts in it, is a mistake") {
  const auto empty = unpack("apiVersion: v1\nkind: ConfigMap\ndata: 7\n");
  REQUIRE(empty.has_value());
  REQUIRE(empty->mistakes.size() == 1);
  CHECK(empty->mistakes.front().message == "it has no data");

  const auto map = unpack("apiVersion: v1\nkind: ConfigMap\ndata:\n  a.yaml:\n    kind: DeviceHealthPolicy\n");
  REQUIRE(map.has_value());
  REQUIRE(map->mistakes.size() == 1);
  CHECK(map->mistakes.front().message == "the value of 'a.yaml' is not a text");
}

TEST_CASE("Helm values hold one file for each of their policies, whether of our chart or of one that includes it") {
  const std::string policies = "policies:\n  mine.yaml: |\n    kind: DeviceHealthPolicy\n";
  const auto own = unpack("replicas: 3\n" + policies + "presets: [nvidia-dra]\n");
  REQUIRE(own.has_value());
  CHECK(own->mistakes.empty());
  REQUIRE(own->files.size() == 1);
  CHECK(own->files.front().name == "f.yaml, value policies, key mine.yaml");
  CHECK(own->presets == std::vector<std::string>{"nvidia-dra"});

  const auto within = unpack("other: {}\ndevice-health-controller:\n  policies:\n    mine.yaml: 'kind: x'\n");
  REQUIRE(within.has_value());
  CHECK(within->files.size() == 1);
}

TEST_CASE("Helm values without policies are a mistake, with presets alone they are not") {
  const auto none = unpack("replicas: 3\npolicies: {}\npresets: []\n");
  REQUIRE(none.has_value());
  REQUIRE(none->mistakes.size() == 1);
  CHECK(none->mistakes.front().message == "these Helm values have no policies and no presets");

  const auto presets = unpack("presets: [nvidia-dra]\n");
  REQUIRE(presets.has_value());
  CHECK(presets->mistakes.empty());

  const auto map = unpack("policies:\n  mine.yaml: {kind: DeviceHealthPolicy}\n");
  REQUIRE(map.has_value());
  REQUIRE(map->mistakes.size() == 1);
  CHECK(map->mistakes.front().message == "the value of 'mine.yaml' is not a text");
}
