#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "tests/support/shell/program.h"

namespace {
using dhc::Seconds;
using dhc::test::Folder;
using dhc::test::Program;

constexpr const char* kValidPolicy = R"(apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: gpus}
spec:
  mode: observe
  match: {}
  after: 60s
  evict: {after: 30s}
)";
}  // namespace

TEST_CASE("version prints the program's name and version") {
  Program program({"version"});
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(program.out() == "device-health-controller " + std::string(dhc::version()) + "\n");
}

TEST_CASE("version as JSON is one object with the version in it") {
  Program program({"version", "--output", "json"});
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(nlohmann::json::parse(program.out())["version"] == std::string(dhc::version()));
}

TEST_CASE("the option for the version prints what the command prints") {
  Program program({"--version"});
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(program.out() == "device-health-controller " + std::string(dhc::version()) + "\n");
}

TEST_CASE("the command help prints the program's help or a command's, and knows what was probably meant") {
  Program all({"help"});
  CHECK(all.ended(Seconds(10)) == 0);
  CHECK(all.out().find("uninstall") != std::string::npos);
  Program one({"help", "run"});
  CHECK(one.ended(Seconds(10)) == 0);
  CHECK(one.out().find("--detail-bind-address") != std::string::npos);
  Program none({"help", "rum"});
  CHECK(none.ended(Seconds(10)) == 2);
  CHECK(none.err().find("unknown command 'rum', did you mean 'run'?") != std::string::npos);
}

TEST_CASE("a ConfigMap as kubectl applies it is validated key by key") {
  const Folder folder;
  std::string text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata:\n  policy.yaml: |\n";
  std::string policy = kValidPolicy;
  for (std::size_t at = 0; at < policy.size();) {
    const auto end = policy.find('\n', at) + 1;
    text += "    " + policy.substr(at, end - at);
    at = end;
  }
  Program good({"validate", folder.write("cm.yaml", text)});
  CHECK(good.ended(Seconds(10)) == 0);
  CHECK(good.out().starts_with("1 policy, default limits: valid\n"));
  const auto path = folder.write("bad.yaml", text + "      colour: red\n");
  Program bad({"validate", path});
  CHECK(bad.ended(Seconds(10)) == 1);
  CHECK(bad.out().starts_with(path + ", configmap p, key policy.yaml:9:3: "));
}

namespace {
std::string indented(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    result += "    " + text.substr(at, end - at);
    at = end;
  }
  return result;
}
const std::string kStream =
    "---\n# Source: dhc/templates/account.yaml\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"
    "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n"
    "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: b}\n";
const std::string kMap = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata:\n  policy.yaml: |\n";
}  // namespace

TEST_CASE("what helm template or kustomize build prints is validated by the ConfigMap in it, and the rest is counted") {
  Program good({"validate", "-"}, kStream + kMap + indented(kValidPolicy));
  CHECK(good.ended(Seconds(10)) == 0);
  CHECK(good.out().starts_with("1 policy, default limits: valid\n"));
  CHECK(good.err() == "<stdin>: skipped 3 objects without policies (2 Role, ServiceAccount)\n");
  Program bad({"validate", "-"}, kStream + kMap + indented(kValidPolicy) + "      colour: red\n");
  CHECK(bad.ended(Seconds(10)) == 1);
  CHECK(bad.out().starts_with("<stdin>, configmap p, key policy.yaml:9:3: "));
  Program none({"validate", "-"}, kStream);
  CHECK(none.ended(Seconds(10)) == 1);
  CHECK(none.out().starts_with("<stdin>:1:1: none of 3 objects is a ConfigMap with policies; "));
}

TEST_CASE("policies in Helm values are validated, and it is said that presets are not read") {
  const std::string values = "replicas: 2\npolicies:\n  mine.yaml: |\n" + indented(kValidPolicy);
  Program good({"validate", "-"}, values + "presets: [nvidia-dra]\n");
  CHECK(good.ended(Seconds(10)) == 0);
  CHECK(good.out().starts_with("1 policy, default limits: valid\n"));
  CHECK(good.err().starts_with("not read: <stdin>: its presets (nvidia-dra) are in the chart: "));
  Program bad({"validate", "-"}, values + "      colour: red\n");
  CHECK(bad.ended(Seconds(10)) == 1);
  CHECK(bad.out().starts_with("<stdin>, value policies, key mine.yaml:9:3: "));
  // Who decides by a configuration must have all of it.
  Program half({"plan", "-f", "-"}, values + "presets: [nvidia-dra]\n");
  CHECK(half.ended(Seconds(10)) == 1);
  CHECK(half.err().find("its presets (nvidia-dra) are in the chart") != std::string::npos);
}

TEST_CASE("an unknown option is an error with code 2 and the option that was probably meant") {
  Program program({"run", "--kubeconfg", "x"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("'--kubeconfg', did you mean '--kubeconfig'?") != std::string::npos);
}

TEST_CASE("an unknown command is an error with code 2 and the command that was probably meant") {
  Program program({"validat", "x.yaml"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("unknown command 'validat', did you mean 'validate'?") != std::string::npos);
}

TEST_CASE("no command at all is an error with code 2 that points to the help") {
  Program program({});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err() == "error: a command is missing\nSee 'device-health-controller --help'.\n");
}

TEST_CASE("help goes to standard output with code 0") {
  for (const char* command : {"run", "demo", "validate", "explain", "uninstall", "version"}) {
    CAPTURE(command);
    Program program({command, "--help"});
    CHECK(program.ended(Seconds(10)) == 0);
    CHECK(program.out().find("--help") != std::string::npos);
  }
}

TEST_CASE("a word that an option does not know is an error that lists those it knows") {
  Program program({"run", "--mode", "delete-everything"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("--mode 'delete-everything' is not one of: enforce, observe") != std::string::npos);
}

TEST_CASE("two sources of configuration are refused") {
  Program program({"run", "--config", "a.yaml", "--config-map", "ns/name"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("--config-map") != std::string::npos);
}

TEST_CASE("enforcing without a configuration is refused") {
  Program program({"run", "--mode", "enforce"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("--config") != std::string::npos);
}

TEST_CASE("a valid configuration is told in words with code 0") {
  const Folder folder;
  Program program({"validate", folder.write("policy.yaml", kValidPolicy)});
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(program.out().starts_with("1 policy, default limits: valid\n\ngpus (priority 0, observe)\n"));
  CHECK(program.out().find("  evict: 30s later, the pod's own grace period") != std::string::npos);
}

TEST_CASE("a warning about a valid configuration stands on standard error, with code 0") {
  const Folder folder;
  const auto path = folder.write("policy.yaml",
                                 "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\n"
                                 "metadata: {name: gpus}\nspec:\n"
                                 "  match: {drivers: [gpu.nvidia.com], message: Xid 79}\n");
  Program program({"validate", path});
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(program.out().starts_with("1 policy, default limits: valid\n"));
  CHECK(program.err().contains(path + ":5:47: warning: spec.match.message is case-sensitive and misses"));
}

TEST_CASE("every mistake of a configuration is named with file, line and column, with code 1") {
  const Folder folder;
  const auto path = folder.write("policy.yaml", std::string(kValidPolicy) + "  colour: red\n  shape: round\n");
  Program program({"validate", path});
  CHECK(program.ended(Seconds(10)) == 1);
  CHECK(program.out().find(path + ":9:3: ") != std::string::npos);
  CHECK(program.out().find(path + ":10:3: ") != std::string::npos);
}

TEST_CASE("a dash reads the configuration from standard input") {
  Program good({"validate", "-"}, kValidPolicy);
  CHECK(good.ended(Seconds(10)) == 0);
  Program bad({"validate", "-"}, "apiVersion: nonsense\n");
  CHECK(bad.ended(Seconds(10)) == 1);
  CHECK(bad.out().starts_with("<stdin>:1:"));
}

TEST_CASE("a file that is not there is an error that names it") {
  Program program({"validate", "/nowhere/policy.yaml"});
  CHECK(program.ended(Seconds(10)) == 1);
  CHECK(program.err().find("/nowhere/policy.yaml") != std::string::npos);
}

TEST_CASE("the demo plays one act over HTTPS to the end, and its account adds up") {
  Program program({"demo", "--act", "plugin", "--speed", "100"});
  CHECK(program.ended(Seconds(60)) == 0);
  const auto out = program.out();
  CHECK(std::regex_search(
      out,
      std::regex(
          R"(in an act of about half a minute[^]*\nThe same as it happens in a browser: http://127\.0\.0\.1:[1-9]\d*/\n[^]*Act 1 of 1, plugin)")));
  CHECK(out.find("RUNNING") != std::string::npos);
  CHECK(out.find("It adds up") != std::string::npos);
  CHECK(out.find('\x1b') == std::string::npos);
}

TEST_CASE("the demo of one seed says the same over HTTPS each time, but for the address of its page") {
  const auto told = [] {
    Program program({"demo", "--act", "plugin", "--seed", "7", "--speed", "100"});
    CHECK(program.ended(Seconds(60)) == 0);
    return std::regex_replace(program.out(), std::regex(R"(http://127\.0\.0\.1:\d+/)"), "ADDRESS");
  };
  const auto first = told();
  CHECK(first.contains("It adds up"));
  CHECK(first == told());
}

TEST_CASE("Ctrl-C ends the demo in the middle of an incident with an account that adds up and code 0") {
  Program program({"demo", "--act", "dra", "--speed", "10"});
  REQUIRE(program.await([&] { return program.out().find("CREDITED") != std::string::npos; }, Seconds(60)));
  program.signal(SIGINT);
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(program.out().find("broken off") != std::string::npos);
  CHECK(program.out().find("1 fault of devices in use. By their kubelets' reports 1 pod held a bad device") !=
        std::string::npos);
  CHECK(program.out().find("It adds up") != std::string::npos);
}

TEST_CASE("an act that there is not is an error that lists those that there are") {
  Program program({"demo", "--act", "tragedy"});
  CHECK(program.ended(Seconds(10)) == 2);
  CHECK(program.err().find("--act 'tragedy' is not one of: dra, plugin") != std::string::npos);
}

TEST_CASE("the demo that repeats begins again with another seed, until Ctrl-C") {
  Program program({"demo", "--act", "plugin", "--speed", "100", "--repeat"});
  const auto evictions = [&] {
    std::vector<std::string> lines;
    const auto out = program.out();
    for (auto at = out.find("EVICTED"); at != std::string::npos; at = out.find("EVICTED", at + 1)) {
      lines.push_back(out.substr(at, out.find('\n', at) - at));
    }
    return lines;
  };
  REQUIRE(program.await([&] { return evictions().size() >= 2; }, Seconds(60)));
  CHECK(evictions().at(0) != evictions().at(1));
  program.signal(SIGINT);
  CHECK(program.ended(Seconds(10)) == 0);
  CHECK(program.out().find("It adds up") != std::string::npos);
}
