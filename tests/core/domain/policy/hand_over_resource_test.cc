#include <string>

#include <doctest/doctest.h>

#include "domain/policy/config_text.h"
#include "domain/policy/placeholders.h"
#include "tests/core/domain/policy/parse_text.h"

using namespace dhc;

namespace {

/// A policy with such a resource; its lines begin in line 8.
std::string with_resource(const std::string& lines) {
  return "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: p}\nspec:\n  match: {}\n"
         "  handOver:\n    incidents: 1\n    onQuarantine: false\n    resource:\n" +
         lines;
}

/// One with such a template, whose lines begin in line 12.
std::string with_template(const std::string& lines, const std::string& per = "Node") {
  return with_resource("      per: " + per + "\n      template:\n" + lines);
}

const std::string kTemplateHead = "        apiVersion: repair.example.com/v1\n        kind: Repair\n";

/// The mistakes of a template of that name, metadata and spec.
std::string of_name(const std::string& name, const std::string& per = "Node") {
  return mistakes(with_template(kTemplateHead + "        metadata: {name: " + name + "}\n", per));
}

std::string of_spec(const std::string& spec, const std::string& per = "Node") {
  return mistakes(
      with_template(kTemplateHead + "        metadata: {name: \"{node}-{incident}\"}\n        spec:\n" + spec, per));
}

const std::string kPath = "spec.handOver.resource.template";

}  // namespace

TEST_CASE("A string of a template is text and placeholders, and braces around anything but letters are text") {
  const auto parts = parts_of("a{node}{{device}} {x1} {} {unknown} {");
  REQUIRE(parts.size() == 7);
  CHECK(parts[0].text == "a");
  CHECK(parts[1].placeholder == Placeholder::Node);
  CHECK(parts[2].text == "{");
  CHECK(parts[3].placeholder == Placeholder::Device);
  CHECK(parts[4].text == "} {x1} {} ");
  CHECK(parts[5].is_unknown);
  CHECK(parts[5].text == "unknown");
  CHECK(parts[6].text == " {");
  CHECK(parts_of("").empty());
}

TEST_CASE("A resource is read with the types that its values have, and told by validate") {
  const auto config =
      parse(with_template(kTemplateHead + "        metadata:\n          name: reset-{incident}\n          labels: "
                                          "{team: \"{node}\", \"example.com/x\": \"\"}\n"
                                          "        spec:\n          node: \"{node}\"\n          force: true\n"
                                          "          retries: 3\n          text: \"3\"\n          none: null\n"
                                          "          share: 1.5\n          list: [{uuid: \"{identity}\"}, a]\n",
                          "Device"));
  REQUIRE(config.has_value());
  const auto& rules = config->policies.front().hand_over->resource;
  REQUIRE(rules);
  CHECK(rules->api_version == "repair.example.com/v1");
  CHECK(rules->kind == "Repair");
  CHECK(rules->ns.empty());
  CHECK(rules->name == "reset-{incident}");
  CHECK(rules->per_device);
  CHECK(!rules->keeps);
  CHECK(rules->text ==
        R"({"apiVersion":"repair.example.com/v1","kind":"Repair","metadata":{"name":"reset-{incident}","labels":)"
        R"({"team":"{node}","example.com/x":""}},"spec":{"node":"{node}","force":true,"retries":3,"text":"3",)"
        R"("none":null,"share":1.5,"list":[{"uuid":"{identity}"},"a"]}})");
  CHECK(format_config(*config).contains("; one object a device, deleted when it is over: {\"apiVersion\""));
}

TEST_CASE("What is no custom resource is refused, and Kubernetes' own objects are") {
  const auto of_version = [](const std::string& version) {
    return mistakes(with_template("        apiVersion: " + version +
                                  "\n        kind: Pod\n        metadata: {name: "
                                  "\"{node}\"}\n"));
  };
  for (const auto* version : {"v1", "apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "apiextensions.k8s.io/v1",
                              "admissionregistration.k8s.io/v1"}) {
    CAPTURE(version);
    CHECK(of_version(version) == "f.yaml:12:21: " + kPath + ".apiVersion is '" + version +
                                     "': Kubernetes' own objects are not made; write that of a custom resource, such "
                                     "as janitor.dgxc.nvidia.com/v1alpha1\n");
  }
  CHECK(of_version("cluster.x-k8s.io/v1beta2").empty());
  CHECK(of_version("a.b/c/d").contains("which is no group and version"));
  CHECK(of_version("Repair.example.com/v1").contains("which is no group and version"));
  CHECK(of_version("../repair.example.com/v1").contains("which is no group and version"));
  CHECK(mistakes(with_template("        kind: R\n        metadata: {name: \"{node}\"}\n"))
            .starts_with("f.yaml:12:9: " + kPath + " has no apiVersion; write"));
  CHECK(mistakes(with_template("        apiVersion: a.b/v1\n        metadata: {name: \"{node}\"}\n"))
            .contains(" has no kind; write it, such as GPUReset"));
  CHECK(mistakes(with_template("        apiVersion: a.b/v1\n        kind: a/b\n        metadata: {name: \"{node}\"}\n"))
            .contains("which is no kind"));
}

TEST_CASE("A name makes an object's name, and never the same for two nodes or devices") {
  CHECK(of_name("\"{node}\"").empty());
  CHECK(of_name("'repair-{incident}'").empty());
  CHECK(of_name("\"{identity}\"", "Device").empty());
  CHECK(of_name("\"{node}.{device}\"", "Device").empty());
  CHECK(of_name("repair") ==
        "f.yaml:14:26: " + kPath +
            ".metadata.name would be the same for several nodes; put {node} or {incident} in it\n");
  for (const auto* name : {"\"{node}\"", "\"{device}\"", "\"{node}-{pool}\""}) {
    CAPTURE(name);
    CHECK(of_name(name, "Device").contains("would be the same for several devices"));
  }
  for (const auto* name : {"\"{node}-\"", "\"Repair-{node}\"", "\"{node}/x\"", "\"{node}_x\"", "\"../{node}\""}) {
    CAPTURE(name);
    CHECK(of_name(name).contains("which makes no object's name"));
  }
  CHECK(of_name("\"{node}-{devise}\"", "Device").contains("{devise} is no placeholder; did you mean {device}?"));
  CHECK(of_name("\"{node}-{device}\"")
            .contains("{device} is not the same for all devices of a node; write "
                      "spec.handOver.resource.per: Device"));
  CHECK(
      mistakes(with_template(kTemplateHead + "        metadata: {namespace: x}\n")).contains(".metadata has no name"));
  CHECK(mistakes(with_template(kTemplateHead)).contains(kPath + " has no metadata"));
  CHECK(mistakes(with_template(kTemplateHead + "        metadata: {generateName: x}\n"))
            .contains("has no key 'generateName'"));
}

TEST_CASE("Placeholders stand in strings of the spec, and nowhere else") {
  CHECK(of_spec("          a: {b: \"{node} of {policy}\"}\n").empty());
  CHECK(of_spec("          a: {node}\n") ==
        "f.yaml:16:14: " + kPath + ".spec.a is a map to YAML; put it in quotes: \"{node}\"\n");
  CHECK(of_spec("          \"{node}\": a\n").contains("the key '{node}' has a placeholder"));
  CHECK(of_spec("          a: [\"{serial}\"]\n")
            .contains(".spec.a[]: {serial} is no placeholder; there are: {node}, {pol"));
  CHECK(of_spec("          a: \"{identity}\"\n").contains("{identity} is not the same for all devices"));
  CHECK(of_spec("          a: !!int 3\n").contains("has a YAML tag"));
  CHECK(of_spec("          a: 0x10\n").contains("not every reader takes for the same number"));
  CHECK(of_spec("          a: yes\n").contains("not every reader takes for a boolean"));
  CHECK(of_spec("          a: \"" + std::string(9000, 'x') + "\"\n").contains("is longer than 8192 bytes"));
}

TEST_CASE("Metadata is the namespace, labels and annotations, and not what the controller itself writes") {
  const auto of_metadata = [](const std::string& more) {
    return mistakes(
        with_template(kTemplateHead + "        metadata:\n          name: \"{node}\"\n          " + more + "\n"));
  };
  CHECK(of_metadata("namespace: repair").empty());
  CHECK(of_metadata("namespace: \"{node}\"").contains("which is no namespace's name"));
  CHECK(of_metadata("namespace: a.b").contains("which is no namespace's name"));
  CHECK(of_metadata("labels: {a: \"{node}\"}").empty());
  CHECK(of_metadata("annotations: {a: \"any text of {node}\"}").empty());
  CHECK(of_metadata("labels: {a: \"any text\"}").contains("which makes no label's value"));
  CHECK(of_metadata("labels: {a: 1}").contains("is a number, but should be a string"));
  CHECK(of_metadata("labels: [a]").contains("is no map of names and strings"));
  CHECK(of_metadata("labels: {\"a b\": x}").contains("is no key of a label"));
  CHECK(of_metadata("labels: {app.kubernetes.io/managed-by: me}").contains("is written by the controller itself"));
  CHECK(of_metadata("annotations: {device-health.io/incident: x}").contains("is written by the controller itself"));
  CHECK(of_metadata("labels: {a: \"{nope}\"}").contains("{nope} is no placeholder"));
  CHECK(of_metadata("finalizers: [a]").contains("has no key 'finalizers'"));
}

TEST_CASE("A resource needs a template, and hand-over one of the two") {
  CHECK(mistakes(with_resource("      per: Device\n")).contains("spec.handOver.resource has no template"));
  CHECK(mistakes(with_resource("      per: Pod\n      template: {}\n")).contains("should be one of Node, Device"));
  CHECK(mistakes(with_resource("      whenRecovered: Drop\n      template: {}\n"))
            .contains("should be one of Delete, Keep"));
}
