#include "cli/policy_test.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/policy_desk.h"

namespace {
using namespace dhc;
using namespace dhc::cli;

constexpr const char* kTestHead =
    "apiVersion: device-health.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: c}\nspec:\n";

/// One node with four devices, a Job's pod on one of them, which is bad from 0 s on.
std::string case_of(const std::string& expect, const std::string& more = {}) {
  return std::string(kTestHead) +
         "  policies: [p.yaml]\n  nodes: [{name: na, drivers: {g.io: 4}}, {name: nb, drivers: {g.io: 4}}]\n"
         "  workloads: [{job: j, driver: g.io}]\n" +
         "  steps: [{device: of j-*, health: Unhealthy, message: lost}" + more + "]\n  expect: [" + expect + "]\n";
}

Policy enforcing() {
  auto policy = policy_of(parse_config(std::vector{
      ConfigFile{.name = "p.yaml",
                 .text = "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: p}\n"
                         "spec: {mode: enforce, match: {}, after: 60s, taint: {}, jobRetry: {}, evict: {}}\n"}}));
  return policy.value();
}

/// The failures of such a case, joined.
std::string played(const std::string& expect, const std::string& more = {}) {
  const auto cases = parse_cases({.name = "f", .text = case_of(expect, more)});
  if (!cases) return "mistake: " + cases.error().front().message;
  std::string all;
  for (const auto& failure : play_case(cases->front(), enforcing()).failures) all += failure + "\n";
  return all;
}

std::string mistake_in(const std::string& text) {
  const auto cases = parse_cases({.name = "f", .text = text});
  if (cases) return {};
  const auto& first = cases.error().front();
  return fmt::format("{}:{}: {}", first.line, first.column, first.message);
}

/// The text of the file.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool holds_policies(const std::string& text) {
  return text.contains("\nkind: DeviceHealthPolicy") || text.contains("\nkind: ControllerLimits");
}

}  // namespace

TEST_CASE("what a case expects of a dead device is found, before and after its time") {
  CHECK(played("{pod: j-*, is: WaitingForWindow, at: 59s}, {device: of j-*, is: Tainted, by: 61s}").empty());
  CHECK(played("{pod: j-*, never: Evicting, until: 59s}, {pod: j-*, is: Evicted, by: 2m}").empty());
  CHECK(played("{job: j, never: JobDiedOfDevice}, {pod: default/j-*, device: of j-*, is: Evicting, by: 2m}").empty());
  CHECK(played("{pod: j-*, never: Evicting}")
            .starts_with("f:9:12: Pod default/j-* must not be Evicting, and was after 1m"));
  const auto late = played("{device: of j-*, is: Tainted, by: 59s}");
  CHECK(late.starts_with("f:9:12: device that a pod default/j-* holds should have been Tainted by 59s, and "));
  CHECK(played("{pod: j-*, is: Evicted, at: 30s}").contains("it was WaitingForWindow (the incident opens after 60 s"));
}

TEST_CASE("what befalls the devices and nodes of a case is felt") {
  CHECK(played("{pod: j-*, never: Evicting}", ", {at: 30s, device: of j-*, health: Healthy}").empty());
  CHECK(played("{pod: j-*, is: NodeCordoned, by: 2m}",
               ", {at: 10s, node: na, cordoned: true}, {at: 10s, node: nb, cordoned: true}")
            .empty());
  CHECK(played("{pod: j-*, is: Evicted, by: 2m}", ", {at: 1s, device: x/gpu-0, vanishes: true}")
            .contains("there is no device x/gpu-0"));
  CHECK(
      played("{pod: j-*, is: Evicted, by: 2m}", ", {at: 1s, node: x, cordoned: true}").contains("there is no node x"));
  CHECK(played("{pod: j-*, is: Evicted, by: 2m}", ", {at: 1s, device: na/gpu-3, taint: a/b=c:NoSchedule}").empty());
}

TEST_CASE("what must never be said of somebody is said of somebody who is there") {
  const auto says = [](const std::string& expect) { return played(expect); };
  CHECK(says("{pod: x-*, never: Evicting}") ==
        "f:9:12: there was never a Pod default/x-*: nothing could be said of it\n");
  CHECK(says("{pod: other/j-*, never: Evicting}").contains("there was never a Pod other/j-*"));
  CHECK(says("{job: k, never: JobDiedOfDevice}").contains("there was never a Job default/k"));
  CHECK(says("{node: nz, never: NodeCordoned}").contains("there was never a Node nz"));
  CHECK(says("{device: na/gpu-9, never: Tainted}").contains("there was never a device na/gpu-9"));
  CHECK(says("{pod: j-*, device: of x-*, never: Tainted}").contains("there was never a Pod default/j-* on account of"));
  CHECK(says("{pod: j-*, never: NodeCordoned}, {node: n*, never: NodeCordoned}, {job: j, never: JobDiedOfDevice}, "
             "{device: na/gpu-3, never: Tainted}")
            .empty());
}

TEST_CASE("the same case says the same twice") {
  const auto once = played("{pod: j-*, is: Evicted, at: 61s}, {device: of j-*, is: Healthy, by: 1s}");
  CHECK(once == played("{pod: j-*, is: Evicted, at: 61s}, {device: of j-*, is: Healthy, by: 1s}"));
}

TEST_CASE("a mistake in a case has its place and a remedy") {
  CHECK(mistake_in("") == "1:1: the file holds no test");
  CHECK(mistake_in(case_of("{pod: j-*, is: Evictd, by: 1s}"))
            .contains("spec.expect[0].is is 'Evictd', which is no reason of a verdict"));
  CHECK(mistake_in(case_of("{pod: j-*, is: Evicted}")).contains("is to say what, and when"));
  CHECK(mistake_in(case_of("{is: Evicted, by: 1s}")).contains("is to name what it is about"));
  CHECK(mistake_in(case_of("{pod: j-*, is: Evicted, by: 1s}", ", {at: 1s, device: na, health: Unhealthy}"))
            .contains("which names no device"));
  CHECK(mistake_in(case_of("{pod: j-*, is: Evicted, by: 1s}", ", {at: 1s, node: na}"))
            .contains("is to say one thing that happens"));
  CHECK(mistake_in(case_of("{pod: j-*, is: Evicted, by: 1s}", ", {at: 1s, device: na/gpu-0, health: Unhealty}")) ==
        "8:98: spec.steps[1].health is 'Unhealty', which no kubelet says");
  CHECK(mistake_in(
            case_of("{pod: j-*, is: Evicted, by: 1s}", ", {at: 1s, device: na/gpu-0, health: PermanentlyUnhealthy}"))
            .empty());
  CHECK(
      mistake_in("apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: c}\nspec: {}\n") ==
      "2:7: this is a configuration, not a test of one");
  CHECK(mistake_in(std::string(kTestHead) + "  policies: [p]\n  expcet: []\n").contains("did you mean") == false);
  CHECK(mistake_in(std::string(kTestHead) + "  policies: [p]\n  expcet: []\n").contains("spec has no key 'expcet'"));
}

TEST_CASE("a file of policies that cannot be read is told where the case names it") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("dhc-policy-place-{}", getpid());
  std::filesystem::create_directories(folder);
  const auto file = folder / "case.yaml";
  std::ofstream(file) << case_of("{pod: j-*, is: Evicted, by: 2m}");
  TestOptions options;
  options.files = {file.string()};
  const auto printed = test_policies(options);
  std::filesystem::remove_all(folder);
  CHECK(printed.code == 1);
  CHECK(printed.out.contains(fmt::format("{}:5:14: {}/p.yaml: No such file", file.string(), folder.string())));
}

TEST_CASE("a JUnit report names files, cases and failures, whatever stands in them") {
  const auto text = junit_of({{.file = "a.yaml", .name = "x", .result = {}},
                              {.file = "a.yaml", .name = "y", .result = {.failures = {"a <b> & \"c\"\x01"}}},
                              {.file = "b.yaml", .name = "z", .result = {}}});
  CHECK(text.contains("tests=\"3\" failures=\"1\">\n  <testsuite name=\"a.yaml\" tests=\"2\" failures=\"1\">"));
  CHECK(text.contains("<testcase name=\"x\" classname=\"a.yaml\"/>"));
  CHECK(text.contains("<failure message=\"a &lt;b&gt; &amp; &quot;c&quot;?\">"));
  CHECK(text.ends_with("  </testsuite>\n</testsuites>\n"));
}

TEST_CASE("every example and preset has a policy test, all of them pass, and a report is written") {
  TestOptions options;
  for (const auto& entry : std::filesystem::directory_iterator("manifests/examples/policy-tests")) {
    if (entry.path().extension() == ".yaml") options.files.push_back(entry.path().string());
  }
  std::string cases;
  for (const auto& name : options.files) cases += text_of(name);
  for (const std::string folder : {"manifests/examples", "manifests/presets", "manifests/controller/config"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".yaml" || !holds_policies(text_of(entry.path()))) continue;
      const bool is_tested = cases.contains("/" + entry.path().filename().string());
      CHECK_MESSAGE(is_tested, entry.path().string(), " is in no case");
    }
  }
  options.junit = (std::filesystem::temp_directory_path() / fmt::format("dhc-junit-{}.xml", ::getpid())).string();
  const auto printed = test_policies(options);
  CHECK_MESSAGE(printed.code == 0, printed.out << printed.err);
  std::ifstream report(options.junit);
  std::string first;
  std::getline(report, first);
  CHECK(first.starts_with("<?xml"));
  std::filesystem::remove(options.junit);
  options.files.push_back("manifests/examples/no-such-file.yaml");
  CHECK(test_policies(options).code == 1);
}
