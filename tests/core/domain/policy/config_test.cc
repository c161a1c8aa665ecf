#include "domain/policy/config.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/policy/config_text.h"
#include "tests/core/domain/policy/parse_text.h"

using namespace dhc;

namespace {

const std::string kHead =
    "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: p}\nspec:\n";
const std::string kLimits =
    "apiVersion: device-health.io/v1alpha1\nkind: ControllerLimits\nmetadata: {name: default}\nspec:\n";

std::string named(const std::string& name, const std::string& spec) {
  return "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: " + name + "}\nspec: {" +
         spec + "}\n---\n";
}

}  // namespace

TEST_CASE("what is left out has the defaults of the policy") {
  const auto config = parse(kHead + "  match: {}\n");
  REQUIRE(config);
  DevicePolicy expected;
  expected.name = "p";
  CHECK(config->policies == std::vector<DevicePolicy>{expected});
  CHECK_FALSE(config->limits_given);
  CHECK(config->limits == Limits{});
  CHECK(parse(kHead + "  match: {}\n  evict: {}\n")->policies[0].evict == EvictRules{});
  CHECK_FALSE(EvictRules{}.notice);
  CHECK(parse(kHead + "  match: {}\n  evict: {notice: {}}\n")->policies[0].evict->notice == NoticeRules{});
  CHECK(parse(kLimits.substr(0, kLimits.size() - 1) + " {}\n")->limits == Limits{});
}

TEST_CASE("every key is read") {
  const auto config = parse(
      kHead +
      "  mode: enforce\n  enforceOn: {namespaces: [ml, team-*], nodeSelector: {matchLabels: {pool: a}}, devices: 5%}\n"
      "  priority: -7\n  match:\n    resources: [nvidia.com/*]\n    drivers: [gpu.nvidia.com]\n"
      "    namespaceSelector: {matchLabels: {a: b, c: ''}}\n"
      "    podSelector: {matchExpressions: [{key: x.io/y, operator: NotIn, values: [v, w]}]}\n"
      "    nodeSelector: {matchExpressions: [{key: k, operator: Exists}, {key: l, operator: DoesNotExist}]}\n"
      "    health: [Unknown, PermanentlyUnhealthy]\n    message: 'Xid (48|79)'\n"
      "    claimConditions: [{type: Ready, status: \"False\"}]\n"
      "    deviceTaints: [{key: gpu.nvidia.com/*, value: '79', effect: None}, {key: a/b, value: ''}, {key: c/d}]\n"
      "  after: 1h30m\n"
      "  evict: {after: 500ms, cordonWait: 5m, gracePeriodSeconds: 30, barePods: true, sharedClaims: Together, "
      "groups: Together, untainted: true, whenBlocked: Wait, whenNoReplacement: {wait: 2m, then: Hold}, "
      "notice: {deadline: 90s, extendUpTo: 0s, scope: Owner}}\n---\n" +
      kLimits +
      "  paused: true\n  evictions: {perMinute: 1, maxInFlight: 2, perNode: 3, perOwner: 4, countedGrace: 8m}\n"
      "  taints: {perMinute: 9}\n  brake: {percent: 5, atLeast: 6, count: 18, byMessage: {percent: 19, atLeast: 20}, "
      "byOwner: {percent: 21, atLeast: 22}, within: 7m, trialAfter: 2h, trialRuns: 90s}\n"
      "  caps: {cluster: {percent: 11, atLeast: 12}, node: {percent: 13, atLeast: 14}, "
      "perDay: {percent: 0, atLeast: 0}, ownerDevicesPerDay: {percent: 15, atLeast: 16}, suspectAfter: 17}\n");
  REQUIRE(config);
  const DevicePolicy& policy = config->policies.at(0);
  CHECK(policy.mode == Mode::Enforce);
  CHECK(policy.enforce_on == EnforceOn{{"ml", "team-*"}, {{{"pool", LabelSelector::Operator::In, {"a"}}}}, 5});
  CHECK(policy.priority == -7);
  CHECK(policy.match.resources == std::vector<std::string>{"nvidia.com/*"});
  CHECK(policy.match.drivers == std::vector<std::string>{"gpu.nvidia.com"});
  using Requirements = std::vector<LabelSelector::Requirement>;
  using enum LabelSelector::Operator;
  CHECK(policy.match.namespaces.requirements == Requirements{{"a", In, {"b"}}, {"c", In, {""}}});
  CHECK(policy.match.pods.requirements == Requirements{{"x.io/y", NotIn, {"v", "w"}}});
  CHECK(policy.match.nodes.requirements == Requirements{{"k", Exists, {}}, {"l", DoesNotExist, {}}});
  CHECK(policy.match.health == std::vector{k8s::Health::Unknown});
  CHECK(policy.match.message->matches("GPU Xid 79, fallen off the bus"));
  CHECK(policy.match.claim_conditions == std::vector<ClaimConditionMatch>{{"Ready", "False"}});
  CHECK(policy.match.health_words == std::vector<std::string>{"PermanentlyUnhealthy"});
  CHECK(policy.match.device_taints ==
        std::vector<DeviceTaintMatch>{{"gpu.nvidia.com/*", "79", "None"}, {"a/b", "", ""}, {"c/d", "*", ""}});
  CHECK(policy.after == std::chrono::minutes(90));
  CHECK(policy.evict == EvictRules{Millis(500), 30, std::chrono::minutes(5), true, true, true, true,
                                   std::chrono::minutes(2), true, NoticeRules{Seconds(90), Seconds(0), true}});
  CHECK(config->limits_given);
  CHECK(config->limits == Limits{.paused = true,
                                 .evictions_per_minute = 1,
                                 .max_in_flight = 2,
                                 .per_node = 3,
                                 .per_owner = 4,
                                 .taints_per_minute = 9,
                                 .brake_percent = 5,
                                 .brake_at_least = 6,
                                 .brake_count = 18,
                                 .brake_by_message = {.percent = 19, .at_least = 20},
                                 .brake_by_owner = {.percent = 21, .at_least = 22},
                                 .brake_within = std::chrono::minutes(7),
                                 .brake_trial_after = std::chrono::hours(2),
                                 .brake_trial_runs = Seconds(90),
                                 .counted_grace = std::chrono::minutes(8),
                                 .cap_cluster = {.percent = 11, .at_least = 12},
                                 .cap_node = {.percent = 13, .at_least = 14},
                                 .cap_per_day = {.percent = 0, .at_least = 0},
                                 .cap_owner_per_day = {.percent = 15, .at_least = 16},
                                 .suspect_after = 17});
}

TEST_CASE("off is a word, with or without quotes") {
  CHECK(parse(kHead + "  mode: off\n  match: {}\n")->policies[0].mode == Mode::Off);
  CHECK(parse(kHead + "  mode: 'off'\n  match: {}\n")->policies[0].mode == Mode::Off);
}

TEST_CASE("policies are sorted by priority, then by name") {
  const auto config =
      parse(named("b", "match: {drivers: [b.io]}") + named("c", "priority: 5, match: {drivers: [c.io]}") +
            named("a", "match: {drivers: [a.io]}"));
  REQUIRE(config);
  std::vector<std::string> names;
  for (const DevicePolicy& policy : config->policies) names.push_back(policy.name);
  CHECK(names == std::vector<std::string>{"c", "a", "b"});
}

TEST_CASE("a test of policies among them is told what it is") {
  CHECK(
      mistakes("apiVersion: device-health.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: a}\nspec: {}\n") ==
      "f.yaml:2:7: this is a test of policies, not a configuration; play it with `device-health-controller test`, and "
      "leave it out here\n");
}

TEST_CASE("a key with swapped letters gets its suggestion") {
  CHECK(mistakes(kHead + "  macth: {}\n").contains("spec has no key 'macth'; did you mean 'match'?"));
}

TEST_CASE("every mistake is told, not only the first, in the order of the text") {
  CHECK(
      mistakes(
          kHead +
          "  mod: enforce\n  match:\n    resources: [cpu]\n    message: \"(\"\n  after: soon\n  evict: {after: 5}\n") ==
      "f.yaml:5:3: spec has no key 'mod'; did you mean 'mode'?\n"
      "f.yaml:7:17: spec.match.resources: 'cpu' can match nothing: a device-plugin resource has a domain, such as "
      "nvidia.com/gpu; a DRA driver belongs into drivers; write a name, or part of one with * for the rest\n"
      "f.yaml:8:14: spec.match.message: '(' is no RE2 expression: missing ): (; correct it; RE2 has no look-around, no "
      "back-references and no repeats above 1000\n"
      "f.yaml:9:10: spec.after is 'soon': a number should stand before 'soon'; write a duration such as 90s, 5m or "
      "1h30m\n"
      "f.yaml:10:18: spec.evict.after is '5': a duration needs a unit; write a duration such as 90s, 5m or 1h30m\n");
}

TEST_CASE("the one way to treat a blocked eviction is to wait") {
  CHECK(mistakes(kHead + "  match: {}\n  evict: {whenBlocked: Force}\n") ==
        "f.yaml:6:24: spec.evict.whenBlocked is 'Force', but should be Wait; write one of these words\n");
}

TEST_CASE("a value of the wrong type says what it is and what it should be") {
  CHECK(mistakes(kHead + "  match: {}\n  priority: high\n") ==
        "f.yaml:6:13: spec.priority is a string, but should be a whole number from -1000000 to 1000000; write a whole "
        "number from -1000000 to 1000000\n");
  CHECK(mistakes(kHead + "  match: {drivers: gpu.io}\n") ==
        "f.yaml:5:20: spec.match.drivers is a string, but should be a list; write [a, b] or one `- a` a line\n");
  CHECK(mistakes(kHead + "  match: {claimConditions: [{type: Ready, status: False}]}\n") ==
        "f.yaml:5:51: spec.match.claimConditions[0].status is a boolean, but should be a string; put it in quotes: "
        "\"False\"\n");
  CHECK(mistakes(kHead + "  match: {}\n  evict: {barePods: yes}\n") ==
        "f.yaml:6:21: spec.evict.barePods is 'yes', which not every reader takes for a boolean; write true or false\n");
  CHECK(mistakes(kHead + "  match: {}\n  evict:\n\n\n") ==
        "f.yaml:6:3: spec.evict has no value; write a map of keys and values, or remove the key\n");
}

TEST_CASE("numbers that readers disagree about are refused with the reason") {
  const auto per_node = [](const std::string& number) {
    return mistakes(kLimits + "  evictions: {perNode: " + number + "}\n");
  };
  CHECK(per_node("10000") == "");
  CHECK(per_node("1") == "");
  CHECK(per_node("014").contains("'014': a leading zero means octal to some readers and decimal to others"));
  for (const char* odd : {"0x10", "1.5", "1e3", "1_000", "+5", "0o17", ".inf"}) {
    CAPTURE(odd);
    CHECK(per_node(odd).contains("only decimal digits are accepted"));
  }
  for (const char* outside : {"0", "-1", "10001", "99999999999999999999999"}) {
    CAPTURE(outside);
    CHECK(per_node(outside).contains("out of range"));
  }
  CHECK(per_node("'5'").contains("without quotes"));
}

TEST_CASE("a policy behind one that matches all it does is a mistake, and a narrower one in front is not") {
  const std::string wide = "match: {drivers: ['gpu.*']}";
  const std::string narrow = "match: {drivers: [gpu.nvidia.com], message: x}";
  CHECK(
      mistakes(named("a", wide) + named("b", narrow)) ==
      "f.yaml:6:1: policy 'b' (priority 0) can never apply: policy 'a' (priority 0, f.yaml:1) comes first and matches "
      "all that it does; give it a higher priority, narrow the other's match, or remove it\n");
  CHECK(mistakes(named("a", wide) + named("b", "priority: 1, " + narrow)) == "");
  CHECK(mistakes(named("b", wide) + named("a", narrow)) == "");
}

TEST_CASE("names and limits may stand once") {
  CHECK(mistakes(named("a", "match: {drivers: [a.io]}") + named("a", "match: {drivers: [b.io]}")) ==
        "f.yaml:6:1: policy 'a' is already defined at f.yaml:1; give it another name, or remove one\n");
  CHECK(mistakes(kLimits + "  paused: true\n---\n" + kLimits + "  paused: false\n") ==
        "f.yaml:7:1: ControllerLimits are already given at f.yaml:1; keep one document of them\n");
}

TEST_CASE("an empty file is a mistake, and a file of comments too") {
  CHECK(mistakes("") == "f.yaml:1:1: the file holds no document; write a DeviceHealthPolicy, or remove the file\n");
  CHECK(mistakes("# nothing\n---\n# here\n").starts_with("f.yaml:1:1: the file holds no document"));
}

TEST_CASE("a ConfigMap's keys are files, in their order") {
  const auto config =
      parse_config_map("ns", "n", {{"b.yaml", kHead + "  match: {}\n"}, {"a.yml", kLimits + "  paused: true\n"}});
  REQUIRE(config);
  CHECK(config->policies.size() == 1);
  CHECK(config->limits.paused);
  const auto bad = parse_config_map("ns", "n", {{"p.yaml", kHead + "  match: {}\n  x: 1\n"}, {"notes.txt", "x"}});
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().size() == 2);
  CHECK(format_mistake(bad.error()[0]) ==
        "configmap ns/n, key notes.txt:1:1: the key does not end in .yaml or .yml; rename or remove it");
  CHECK(format_mistake(bad.error()[1]).starts_with("configmap ns/n, key p.yaml:6:3: spec has no key 'x'"));
  CHECK(format_mistake(parse_config_map("ns", "n", {}).error().at(0)) ==
        "configmap ns/n:1:1: it has no data; add a key such as policies.yaml");
}

TEST_CASE("there is an end to mistakes and to policies") {
  std::string keys;
  for (int i = 0; i < 250; ++i) keys += "  k" + std::to_string(i) + ": 1\n";
  const auto many = parse(kHead + "  match: {}\n" + keys);
  REQUIRE_FALSE(many);
  CHECK(many.error().size() == 200);
  CHECK(mistakes(kHead + keys + keys) == "f.yaml:5:3: spec has more than 256 keys; shorten it\n");
  std::string names;
  for (int i = 0; i < 257; ++i) names += "d" + std::to_string(i) + ".io,";
  CHECK(mistakes(kHead + "  match: {drivers: [" + names + "]}\n").contains("has more than 256 items; use * in names"));
  std::string policies;
  for (int i = 0; i < 200; ++i)
    policies += named("p" + std::to_string(i), "match: {drivers: [d" + std::to_string(i) + ".io]}");
  CHECK(mistakes(policies) == "");
  CHECK(mistakes(policies + named("q", "match: {}")).contains("more than 200 policies"));
}

TEST_CASE("brakes by message and by owner are told where there are such") {
  const auto config = parse(kLimits + "  brake: {byMessage: {atLeast: 20}, byOwner: {atLeast: 4}}\n");
  REQUIRE(config);
  CHECK(config->limits.brake_by_owner == BrakeShare{.percent = 30, .at_least = 4});
  CHECK(format_config(*config).contains(
      "3 devices of one kind within 5m; or at least 20 with the same words; or more than 30% and at "
      "least 4 of an owner's devices; a trial after 30m"));
}

TEST_CASE("a brake by message of which a share alone is given is off, and told so") {
  const auto config = parse(kLimits + "  brake: {byMessage: {percent: 5}}\n");
  REQUIRE(config);
  CHECK(
      format_config(*config).contains("within 5m; none of more than 5% with the same words, as atLeast is 0; a trial"));
}

TEST_CASE("a valid configuration is told in words, defaults written out") {
  const auto config =
      parse(named("gpus",
                  "mode: enforce, priority: 9, match: {drivers: [a.io], podSelector: {matchLabels: {x: z}}, "
                  "message: 'Xid'}, evict: {after: 30s}") +
            named("rest", "match: {}"));
  REQUIRE(config);
  CHECK(
      format_config(*config) ==
      "2 policies, default limits: valid\n"
      "\n"
      "gpus (priority 9, enforce)\n"
      "  devices: drivers a.io\n"
      "  pods: x=z\n"
      "  when: Unhealthy with a message like /Xid/ for 1m\n"
      "  taint: never\n"
      "  Jobs: no retries back; a pod whose loss would end its Job: held\n"
      "  evict: 30s later, the pod's own grace period; not within 30m of its node's cordon; pods without a "
      "controller: no; shared claims: never; the pods of a gang: each by itself; no place "
      "for the replacement: wait 10m, then evict\n"
      "\n"
      "rest (priority 0, observe)\n"
      "  devices: every device\n"
      "  when: Unhealthy for 1m\n"
      "  taint: never\n"
      "  Jobs: no retries back\n"
      "  evict: never\n"
      "\n"
      "limits\n"
      "  evictions: 10 a minute, 5 in flight, 2 a node, 1 an owner; at most 1h of a grace period holds a slot\n"
      "  taints: 60 a minute\n"
      "  brake: more than 30% and at least 3 devices of one kind within 5m; a trial after 30m, passed after 5m\n"
      "  caps: 10% and at least 2 devices out of service in the cluster, 50% and at least 1 on a node; 5% and at "
      "least 4 evictions a day; 1% and at least 2 of an owner's devices a day; 5% and at least 1 nodes handed over; an "
      "owner is suspected from 3 devices "
      "on\n");
}

TEST_CASE("words for health and the driver's taints are told") {
  const auto config = parse(named("gpus",
                                  "match: {drivers: [a.io], health: [Unhealthy, PermanentlyUnhealthy], "
                                  "deviceTaints: [{key: a.io/xid}, {key: b, value: '7', effect: None}]}"));
  REQUIRE(config);
  CHECK(config->warnings.empty());
  CHECK(
      format_config(*config).contains("  when: Unhealthy or PermanentlyUnhealthy, or driver's taint "
                                      "a.io/xid:NoSchedule or NoExecute, or driver's taint "
                                      "b=7:None for 1m\n"));
}

TEST_CASE("a word that nobody is known to say, and a taint that can hardly be meant, are warned of") {
  const auto warned = [](const std::string& match) {
    const auto config = parse(named("p", "match: " + match));
    REQUIRE(config);
    return config->warnings.size() == 1 ? config->warnings.front().message : std::string();
  };
  CHECK(warned("{health: [Degraded]}") ==
        "spec.match.health[0]: 'Degraded' is no word that Kubernetes is known to report");
  CHECK(warned("{deviceTaints: [{key: '*'}]}").contains("is every taint of the driver"));
  CHECK(warned("{resources: [a.io/gpu], deviceTaints: [{key: a}]}").contains("match names resources alone"));
}

TEST_CASE("where a policy enforces is told, and warned of where it means nothing") {
  const auto told = [](const std::string& spec) {
    const auto config = parse(named("p", spec + ", match: {}"));
    REQUIRE(config);
    for (const auto& warning : config->warnings) return format_warning(warning);
    return format_config(*config);
  };
  CHECK(told("mode: enforce, enforceOn: {namespaces: [a, b-*], nodeSelector: {matchLabels: {c: d}}, devices: 0%}")
            .contains("  enforces on: namespaces a, b-*; nodes c=d; 0% of the devices\n"));
  CHECK(told("mode: enforce, enforceOn: {devices: 100%}").contains("  enforces on: all of them\n"));
  CHECK(told("mode: observe, enforceOn: {devices: 10%}") ==
        "f.yaml:4:34: warning: spec.enforceOn has no effect: spec.mode is observe, so nothing is enforced anywhere; "
        "write mode: enforce, which observes where enforceOn does not hold, or remove enforceOn");
  const std::string black_hole = "mode: enforce, jobRetry: {blackHole: {node: NoSchedule}}, enforceOn: ";
  CHECK(told(black_hole + "{devices: 10%}").contains("spec.jobRetry.blackHole.node taints no node"));
  CHECK(told(black_hole + "{nodeSelector: {matchLabels: {c: d}}}").contains("enforces on: nodes c=d"));
}

TEST_CASE("pauses of parts are read with all they say, and told") {
  const auto config =
      parse(kLimits +
            "  pauses:\n  - {nodes: [a, b-*], nodeSelector: {matchLabels: {c: d}}, drivers: [e.io], resources: "
            "[f.io/g], namespaces: [h], until: 2026-11-20T13:00:00+01:00, reason: \"x y\", by: i}\n"
            "  - {namespaces: [j], until: \"2026-11-20T12:00:00Z\", reason: k}\n");
  REQUIRE(config);
  const auto text = format_config(*config);
  CHECK(text.contains(
      "  paused until 2026-11-20T12:00:00Z for node a, b-*; nodes with c=d; driver e.io; resource f.io/g; "
      "namespace h, by i: x y\n"
      "  paused until 2026-11-20T12:00:00Z for namespace j: k\n"));
  CHECK(mistakes(kLimits + "  pauses: [{nodes: [a], reason: x}]\n") ==
        "f.yaml:5:12: spec.pauses[0] has no until; a pause of a part needs an end and a reason: add until: "
        "2026-11-20T12:00:00Z and reason: ...\n");
}

TEST_CASE("a webhook's URL is https unless http is written, and its mistakes are told without its text") {
  const auto rules = [](const std::string& url) {
    const auto config = parse(kLimits + "  webhook: {secretFile: /s, url: '" + url + "'}\n");
    return config ? config->limits.webhook : std::nullopt;
  };
  CHECK(rules("https://hooks.example.com/a?b=c")->url ==
        WebhookUrl{.tls = true, .host = "hooks.example.com", .port = 443, .target = "/a?b=c"});
  CHECK(rules("hooks.example.com:8443")->url == WebhookUrl{.host = "hooks.example.com", .port = 8443, .target = "/"});
  CHECK(rules("http://10.0.0.1/x")->url == WebhookUrl{.tls = false, .host = "10.0.0.1", .port = 80, .target = "/x"});
  CHECK(rules("http://[::1]:8080?x")->url == WebhookUrl{.tls = false, .host = "::1", .port = 8080, .target = "/?x"});
  CHECK(rules("h/to?u=https://x")->url == WebhookUrl{.host = "h", .target = "/to?u=https://x"});
  for (const std::string bad :
       {"ftp://s3cret.example.com/", "https://user:s3cret@example.com/", "https:///s3cret", "https://a:0/s3cret",
        "https://a:66000/s3cret", "https://::1/s3cret", "https://a b/s3cret", "https://a/s3cret#x",
        "https://[::1/s3cret", "https://[h]/s3cret", "https://a_b/s3cret"}) {
    CAPTURE(bad);
    const auto told = mistakes(kLimits + "  webhook: {secretFile: /s, url: '" + bad + "'}\n");
    CHECK(told.starts_with("f.yaml:5:"));
    CHECK(told.contains("; write https://HOST"));
    CHECK_FALSE(told.contains("s3cret"));
  }
}

TEST_CASE("a webhook is read with all its keys, and told without the URL's path") {
  const auto config = parse(kLimits +
                            "  webhook: {url: 'http://h.example.com/t0ken', secretFile: /etc/s, caFile: /etc/ca, "
                            "perMinute: 600, source: /clusters/east}\n");
  REQUIRE(config);
  CHECK(config->limits.webhook ==
        WebhookRules{.url = {.tls = false, .host = "h.example.com", .port = 80, .target = "/t0ken"},
                     .secret_file = "/etc/s",
                     .ca_file = "/etc/ca",
                     .per_minute = 600,
                     .source = "/clusters/east"});
  const auto text = format_config(*config);
  CHECK(
      text.contains("  webhook: h.example.com port 80 WITHOUT TLS, signed by the key in /etc/s; at most 600 requests a "
                    "minute; trusts "
                    "/etc/ca; source /clusters/east\n"));
  CHECK_FALSE(text.contains("t0ken"));
  CHECK(mistakes(kLimits + "  webhook: {url: h}\n") ==
        "f.yaml:5:12: spec.webhook has no secretFile: anybody could tell the receiver anything; add secretFile: "
        "/etc/device-health/webhook/secret, a mounted Secret with at least 16 bytes\n");
}

TEST_CASE("a pause in an annotation is one document, in YAML or JSON, and a mistake in it has its place") {
  const auto good =
      parse_pause({.name = "a", .text = R"({"nodes":["n"],"until":"2026-11-20T12:00:00Z","reason":"r"})"});
  REQUIRE(good);
  CHECK(good->nodes == std::vector<std::string>{"n"});
  CHECK(good->reason == "r");
  const auto told = [](const std::string& text) {
    const auto pause = parse_pause({.name = "a", .text = text});
    return pause ? std::string() : format_mistake(pause.error());
  };
  CHECK(told(R"({"nodes":["n"],"until":"soon","reason":"r"})") ==
        "a:1:24: pause.until is 'soon', which is no RFC 3339 time; write a time with its offset, such as "
        "2026-11-20T12:00:00Z");
  for (const char* text : {"", "true", "[", "{}\n---\n{}\n", "{\"nodes\": \"n\"}"}) {
    CAPTURE(text);
    CHECK(told(text).starts_with("a:"));
  }
}

TEST_CASE("what somebody wrote is shown short and without control characters") {
  const std::string text =
      mistakes(kHead + "  match: {}\n  mode: \"" + std::string(500, 'x') + "\"\n  \"a\\e[31m\": 1\n");
  CHECK(text.contains("'" + std::string(60, 'x') + "...'"));
  CHECK(text.contains("'a?[31m'"));
  CHECK_FALSE(text.contains("\x1b"));
}
