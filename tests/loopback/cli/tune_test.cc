#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/shell/program.h"

namespace {
using dhc::Seconds;
using dhc::test::Folder;
using dhc::test::Program;

constexpr const char* kTrace = "bench/traces/infinitehbd/fault_trace.json";
constexpr const char* kHead = "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\n";

std::string policy_named(const std::string& name, const std::string& spec) {
  return kHead +
         ("metadata: {name: " + name + "}\nspec: {match: {drivers: [" + name + ".example.com]}, " + spec + "}\n");
}

/// How `tune` with these arguments fails.
std::string failure_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tune");
  Program program(arguments);
  CHECK(program.ended(Seconds(30)) == 1);
  CHECK(program.out().empty());
  return program.err();
}
}  // namespace

TEST_CASE("tune prints the line of a published trace with the running policy's place on it") {
  const Folder folder;
  const auto policy =
      folder.write("policy.yaml", policy_named("gpus", "taint: {device: NoSchedule}, recover: {hold: 72h}"));
  Program program({"tune", kTrace, "-f", policy, "--sweep", "halfLife=168h,720h", "--sweep", "quarantineAbove=2,5"});
  CHECK(program.ended(Seconds(30)) == 0);
  CHECK(program.out().contains("Running: policy gpus (after 1m, hold 72h, "));
  CHECK(program.out().contains("**running, "));
  CHECK(program.out().contains("| hold | halfLife | quarantineAbove | repeat failures |"));
}

TEST_CASE("tune prints one JSON object") {
  Program program({"tune", kTrace, "-o", "json", "--sweep", "hold=24h"});
  CHECK(program.ended(Seconds(30)) == 0);
  const auto json = nlohmann::json::parse(program.out());
  CHECK(json["devices"] == 400);
  CHECK(json["policy"] == nullptr);
  CHECK(json["nobodySpeaks"]["line"].size() > 1);
  CHECK(json["nobodySpeaks"]["running"]["hold"] == "72h");
}

TEST_CASE("tune names what it cannot read, and what to give instead") {
  const Folder folder;
  const auto text = folder.write("notes.txt", "hello\n");
  CHECK(failure_of({"/nowhere"}).starts_with("error: /nowhere: no such file or folder"));
  CHECK(failure_of({text}).starts_with("error: " + text + ": no trace that can be read: give "));
  const auto broken = folder.write("trace.json", "[{\"node_id\": \"a\"}]");
  CHECK(failure_of({broken}).starts_with("error: " + broken + ": event 1: "));
  const auto titan = folder.write("gc.csv", "SN,location,insert,remove,duration,out,event\n1,c0,,soon,,,DBE\n");
  CHECK(failure_of({titan}) == "error: " + titan + ": line 2: no time\n");
  const auto well = folder.write("well.csv", "SN,location,insert,remove,duration,out,event\n");
  CHECK(failure_of({well}).contains("no device broke in it"));
  CHECK(failure_of({kTrace, text}).contains("a trace is given alone"));
  const auto torn = folder.write("torn.jsonl", "{\"recording\":1}\nnonsense\n");
  CHECK(failure_of({torn}).contains("torn.jsonl"));
}

TEST_CASE("tune refuses a value that a policy would refuse, with the key") {
  CHECK(failure_of({kTrace, "--sweep", "hold=200h"}).starts_with("error: --sweep hold=200h: spec.recover.hold"));
  CHECK(failure_of({kTrace, "--sweep", "hald=1h"}).contains("did you mean 'hold'?"));
}

TEST_CASE("tune asks which of several policies it is about, and refuses one that holds no device") {
  const Folder folder;
  const auto two = folder.write(
      "two.yaml", policy_named("a", "taint: {device: NoSchedule}") + "---\n" + policy_named("b", "evict: {after: 0s}"));
  CHECK(failure_of({kTrace, "-f", two}).contains("has 2 policies: name one by --policy: a, b"));
  CHECK(failure_of({kTrace, "-f", two, "--policy", "c"}).contains("has no policy 'c': it has a, b"));
  CHECK(failure_of({kTrace, "-f", two, "--policy", "b"}).contains("policy b taints nothing"));
  CHECK(failure_of({kTrace, "--policy", "a"}).contains("give -f FILE"));
  const auto bad = folder.write("bad.yaml", policy_named("a", "taint: {device: Sometimes}"));
  CHECK(failure_of({kTrace, "-f", bad}).contains("bad.yaml:"));
}
