#include <array>
#include <chrono>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "domain/policy/config.h"
#include "domain/policy/config_text.h"
#include "tests/core/domain/policy/parse_text.h"
#include "tests/support/core/fixtures.h"

using namespace dhc;

namespace {

/// A policy for every device with such further lines; they begin in line 6.
std::string policy(const std::string& lines, const std::string& match = "{}") {
  return "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: p}\nspec:\n  match: " +
         match + "\n" + lines;
}

const std::string kNoExecute =
    " is 'NoExecute', which is not offered: it deletes pods past PodDisruptionBudgets, opt-outs and every other "
    "policy's scope, and storms on shared claims (seen: 220 pods in a minute); write NoSchedule, and let evict handle "
    "running pods";
const std::string kDuration = "; write a duration such as 90s, 5m or 1h30m";

/// What the parser says of each bad file about taint, recover and jobRetry.
const std::map<std::string, std::string> kBad = {
    {"taint-no-execute", "6:19: spec.taint.device" + kNoExecute},
    {"taint-node-no-execute", "6:17: spec.taint.node" + kNoExecute},
    {"taint-nothing",
     "6:10: spec.taint taints nothing: device and node are both Never; remove taint, or write device: NoSchedule or "
     "node: NoSchedule"},
    {"taint-nothing-for-plugins",
     "6:10: spec.taint taints nothing: match names resources alone, a device-plugin device cannot be tainted by "
     "itself, and node is Never; write node: NoSchedule, or remove taint"},
    {"taint-device-word",
     "6:19: spec.taint.device is 'NoSchedul', but should be one of Never, NoSchedule, Staged; did you mean "
     "'NoSchedule'?"},
    {"taint-null", "6:3: spec.taint has no value; write a map of keys and values, or remove the key"},
    {"node-at-least-without-node",
     "6:24: spec.taint.nodeAtLeast has no effect: spec.taint.node is Never; write node: NoSchedule, or remove "
     "nodeAtLeast"},
    {"node-at-least-percent",
     "6:52: spec.taint.nodeAtLeast.percent is '0': out of range; write a whole number from 1 to 100"},
    {"node-at-least-key", "6:43: spec.taint.nodeAtLeast has no key 'device'; did you mean 'devices'?"},
    {"recover-without-taint",
     "6:12: spec.recover has no effect: it defines when a taint is removed, and there is no taint; add taint: {}, or "
     "remove recover"},
    {"recover-then",
     "7:19: spec.recover.then is 'Release', but should be one of Probation, Keep; write one of these words"},
    {"recover-hold-too-long",
     "8:19: spec.recover.hold is '169h': holds double with each incident and end at 7 days (168h); write 168h or less; "
     "then: Keep holds until an operator acknowledges"},
    {"recover-healthy-for-zero", "8:25: spec.recover.healthyFor is '0s': shorter than 1s" + kDuration},
    {"recover-half-life-days", "7:23: spec.recover.halfLife is '7d': durations have no days; 1 day is 24h" + kDuration},
    {"recover-quarantine-zero",
     "7:30: spec.recover.quarantineAbove is '0': out of range; write a number from 1 to 1000"},
    {"recover-quarantine-exponent",
     "7:30: spec.recover.quarantineAbove is '1.5e1': only decimal digits and one point between them are accepted, no "
     "hexadecimal or exponent; write a number from 1 to 1000"},
    {"recover-identity-attribute",
     "7:32: spec.recover.identityAttribute is 'gpu-uuid', which is no device attribute's name; write a name such as "
     "uuid or gpu.nvidia.com/uuid, as the ResourceSlice has it"},
    {"job-retry-credit-off",
     "6:22: spec.jobRetry.credit is false, so maxPerJob, recreate would have no effect; write credit: true, or remove "
     "those keys"},
    {"job-retry-none", "6:25: spec.jobRetry.maxPerJob is '0': out of range; write a whole number from 1 to 100"},
    {"job-retry-settle-zero", "7:22: spec.jobRetry.settle is '0s': shorter than 1s" + kDuration},
    {"job-retry-when-not",
     "6:33: spec.jobRetry.whenNotCreditable is 'Wait', but should be one of Evict, HoldIfFatal, Hold; write one of "
     "these words"},
    {"job-retry-take-back",
     "6:24: spec.jobRetry.takeBack is a string, but should be true or false; write true or false, without quotes"},
    {"job-retry-recreate",
     "6:24: spec.jobRetry.recreate is 'Always', but should be one of Never, Once; write one of these words"},
    {"job-retry-key", "6:14: spec.jobRetry has no key 'maxPerJobs'; did you mean 'maxPerJob'?"},
    {"black-hole-no-execute", "6:32: spec.jobRetry.blackHole.node" + kNoExecute},
    {"black-hole-within", "6:34: spec.jobRetry.blackHole.within is '10': a duration needs a unit" + kDuration},
};

}  // namespace

TEST_CASE("each bad file about taint, recover and jobRetry gets its own sentence at its own place") {
  for (const auto& [name, expected] : kBad) {
    CAPTURE(name);
    CHECK(mistakes(test::read_fixture("config/bad/" + name + ".yaml")) == "f.yaml:" + expected + "\n");
  }
}

TEST_CASE("an empty taint or jobRetry means its defaults and an absent one means nothing") {
  CHECK_FALSE(parse(policy(""))->policies[0].taint);
  CHECK_FALSE(parse(policy(""))->policies[0].job_retry);
  const auto config = parse(policy("  taint: {}\n  jobRetry: {}\n  recover: {}\n"));
  REQUIRE(config);
  const DevicePolicy& read = config->policies[0];
  REQUIRE(read.taint);
  CHECK(read.taint->device == TaintRules::Device::NoSchedule);
  CHECK_FALSE(read.taint->node);
  CHECK(read.taint == TaintRules{});
  CHECK(read.job_retry == JobRetryRules{});
  CHECK(read.recover == RecoverRules{});
}

TEST_CASE("every key of taint, recover and jobRetry is read") {
  const auto config = parse(
      policy("  taint: {device: Staged, partitions: Never, node: NoSchedule, nodeAtLeast: {devices: 3, percent: 50}}\n"
             "  recover: {healthyFor: 5m, hold: 168h, then: Keep, halfLife: 720h, quarantineAbove: 7, "
             "identityAttribute: uuid}\n"
             "  jobRetry: {credit: true, maxPerJob: 4, settle: 20s, whenNotCreditable: Evict, takeBack: true, "
             "recreate: Once, blackHole: {rejections: 2, within: 1m, node: NoSchedule}}\n"));
  REQUIRE(config);
  const DevicePolicy& read = config->policies[0];
  CHECK(read.taint == TaintRules{TaintRules::Device::Staged, false, true, 3, 50});
  CHECK(read.recover ==
        RecoverRules{std::chrono::minutes(5), std::chrono::hours(168), false, std::chrono::hours(720), 7, "uuid"});
  CHECK(read.job_retry == JobRetryRules{true, 4, Seconds(20), JobRetryRules::NotCreditable::Evict, true, true, 2,
                                        std::chrono::minutes(1), true});
}

TEST_CASE("each word of whenNotCreditable is read as the rule of its name") {
  using NotCreditable = JobRetryRules::NotCreditable;
  const std::vector<std::pair<std::string, NotCreditable>> words = {
      {"Evict", NotCreditable::Evict}, {"HoldIfFatal", NotCreditable::HoldIfFatal}, {"Hold", NotCreditable::Hold}};
  for (const auto& [word, rule] : words) {
    const auto config = parse(policy("  jobRetry: {whenNotCreditable: " + word + "}\n"));
    REQUIRE(config);
    CHECK(config->policies[0].job_retry->not_creditable == rule);
  }
}

TEST_CASE("device Never is a taint as long as the node gets one") {
  const auto config = parse(policy("  taint: {device: Never, node: NoSchedule}\n"));
  REQUIRE(config);
  CHECK(config->policies[0].taint == TaintRules{TaintRules::Device::Never, true, true});
  CHECK(mistakes(policy("  taint: {device: Never}\n")).contains("taints nothing"));
}

TEST_CASE("the other devices of a card are tainted unless the policy says Never, and only where devices are") {
  CHECK(parse(policy("  taint: {}\n"))->policies[0].taint->partitions);
  CHECK_FALSE(parse(policy("  taint: {partitions: Never}\n"))->policies[0].taint->partitions);
  CHECK(mistakes(policy("  taint: {partitions: NoExecute}\n")).contains("which is not offered"));
  CHECK(mistakes(policy("  taint: {device: Never, node: NoSchedule, partitions: NoSchedule}\n"))
            .contains("spec.taint.partitions has no effect"));
  CHECK(mistakes(policy("  taint: {device: Never, node: NoSchedule, partitions: Never}\n")) == "");
}

TEST_CASE("a policy for plugin resources alone can only taint nodes") {
  const std::string plugins = "{resources: [a.io/b]}";
  CHECK(mistakes(policy("  taint: {node: NoSchedule}\n", plugins)) == "");
  CHECK(mistakes(policy("  taint: {device: Staged, node: Never}\n", plugins)).contains("match names resources alone"));
  CHECK(mistakes(policy("  taint: {}\n", "{resources: [a.io/b], drivers: [b.io]}")) == "");
  CHECK(mistakes(policy("  taint: {}\n", "{drivers: [b.io]}")) == "");
  // One fault, one sentence: the word that is wrong already.
  CHECK(mistakes(policy("  taint: {node: NoSchedul}\n", plugins)) ==
        "f.yaml:6:17: spec.taint.node is 'NoSchedul', but should be one of Never, NoSchedule; did you mean "
        "'NoSchedule'?\n");
}

TEST_CASE("recover may stand where a rejecting node is the only thing tainted") {
  CHECK(mistakes(policy("  jobRetry: {blackHole: {node: NoSchedule}}\n  recover: {hold: 1h}\n")) == "");
  CHECK(mistakes(policy("  jobRetry: {}\n  recover: {hold: 1h}\n")).contains("there is no taint"));
}

TEST_CASE("credit false may stand with keys that ask for nothing, and with blackHole") {
  CHECK(mistakes(policy("  jobRetry: {credit: false, takeBack: false, recreate: Never, blackHole: {within: 5m}}\n")) ==
        "");
  CHECK(mistakes(policy("  jobRetry: {credit: false, settle: 5s}\n"))
            .contains("so settle would have no effect; write credit: true, or remove that key"));
  CHECK(mistakes(policy("  jobRetry: {credit: false, takeBack: true}\n")).contains("so takeBack would"));
}

TEST_CASE("the longest durations and the last milliseconds before a bound") {
  CHECK(mistakes(policy("  taint: {}\n  recover: {hold: 168h}\n")) == "");
  CHECK(mistakes(policy("  taint: {}\n  recover: {hold: 168h1ms}\n")).contains("end at 7 days"));
  CHECK(mistakes(policy("  taint: {}\n  recover: {healthyFor: 1s}\n")) == "");
  CHECK(mistakes(policy("  taint: {}\n  recover: {healthyFor: 999ms}\n")).contains("shorter than 1s"));
  CHECK(mistakes(policy("  jobRetry: {settle: 720h}\n")) == "");
  CHECK(mistakes(policy("  jobRetry: {settle: 720h1ms}\n")).contains("longer than 30 days"));
}

TEST_CASE("quarantineAbove is a decimal number, with a fraction or without") {
  const auto read = [](const std::string& number) -> double {
    const auto config = parse(policy("  taint: {}\n  recover: {quarantineAbove: " + number + "}\n"));
    return config ? config->policies[0].recover.quarantine_above : 0;
  };
  CHECK(read("1") == 1);
  CHECK(read("1.0") == 1);
  CHECK(read("1.75") == 1.75);
  CHECK(read("2.1") == 2.1);
  CHECK(read("1.0000000000000000000000001") == 1);
  CHECK(read("999.9") == 999.9);
  CHECK(read("1000") == 1000);
  for (const char* number : {"0.99", "0.5", "1000.001", "-1.5", "1.", ".5", "1.5.1", "01.5", "+1.5", "1e1", "0x2",
                             "1_0.5", "1:30.5", ".inf", ".nan", "1,5", "\"1.5\"", "1.5h"}) {
    CHECK_MESSAGE(read(number) == 0, number);
  }
}

TEST_CASE("an attribute's name is an identifier, with or without a domain") {
  const auto good = [](const std::string& name) {
    return mistakes(policy("  taint: {}\n  recover: {identityAttribute: \"" + name + "\"}\n")).empty();
  };
  for (const char* name : {"uuid", "_a1", "gpu.nvidia.com/uuid", "a/B"}) CHECK_MESSAGE(good(name), name);
  const std::string long_id(33, 'a');
  const std::string long_domain = std::string(32, 'a') + "." + std::string(31, 'b');
  CHECK(good(long_id.substr(1)));
  CHECK(good(long_domain.substr(1) + "/a"));
  for (const std::string& name : {std::string("1a"), std::string("a-b"), std::string("a/b/c"), std::string("/a"),
                                  std::string("a/"), std::string("A.io/a"), long_id, long_domain + "/a"}) {
    CHECK_MESSAGE(!good(name), name);
  }
}

TEST_CASE("taint, recover and jobRetry are told in words") {
  const auto told = [](const std::string& lines) {
    const auto config = parse(policy(lines));
    return config ? format_config(*config) : std::string("invalid");
  };
  CHECK(told("  taint: {}\n  jobRetry: {}\n")
            .contains("  taint: DRA devices NoSchedule, the others of their cards too; nodes never\n"
                      "  recover: healthy for 10m, else probation after 72h; penalty halves in 336h, quarantine above "
                      "2\n"
                      "  Jobs: up to 3 retries back each, seen 10s before the eviction; not creditable: held if the "
                      "loss would end the Job; 3 "
                      "rejected pods on a node within 10m make it a BlackHoleNode\n"));
  CHECK(told("  taint: {device: Staged, node: NoSchedule}\n"
             "  recover: {then: Keep, halfLife: 168h, quarantineAbove: 1.75, identityAttribute: uuid}\n"
             "  jobRetry: {takeBack: true, whenNotCreditable: Evict, recreate: Once, blackHole: {node: NoSchedule}}\n")
            .contains("  taint: DRA devices None first, then NoSchedule, the others of their cards too; nodes "
                      "NoSchedule from 2 bad plugin devices "
                      "and 25% of the node's\n"
                      "  recover: healthy for 10m, else kept for an operator after 72h; penalty halves in 168h, "
                      "quarantine above 1.75; a device is its uuid\n"
                      "  Jobs: up to 3 retries back each, seen 10s before the eviction, taken back if unspent; not "
                      "creditable: evicted all the same; a Job that died of hardware is created once more; 3 rejected "
                      "pods on a node within 10m make it a BlackHoleNode, which is tainted\n"));
  CHECK(told("  jobRetry: {credit: false}\n")
            .contains("  Jobs: no retries back; a pod whose loss would end its Job: held; 3 rejected pods"));
  CHECK(told("  jobRetry: {credit: false, whenNotCreditable: Evict}\n")
            .contains("a pod whose loss would end its Job: evicted all the same; 3 rejected pods"));
}
