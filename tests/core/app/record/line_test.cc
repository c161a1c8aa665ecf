#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "app/record/lines.h"
#include "app/record/reader.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "domain/policy/config.h"
#include "k8s-client/model/decoder.h"
#include "tests/support/core/fixtures.h"
#include "tests/support/core/samples.h"

using namespace dhc;

namespace {

k8s::Object sample_of(k8s::Kind kind) {
  auto object = *k8s::Decoder(kind, kKeptFields).decode_object(test::full_sample(kind));
  // Only the controller's own may be recorded with what they say.
  if (auto* map = std::get_if<k8s::ConfigMap>(&object)) map->meta.name = std::string(kIncidentsName);
  return object;
}

std::vector<record::Line> lines_of(Message message, std::uint64_t answers = 0) {
  std::vector<record::Line> lines;
  record::put_message(message, answers, lines);
  return lines;
}

/// What the lines say, read again.
record::MessageStep read_back(const std::vector<record::Line>& lines) {
  record::Reader reader;
  std::optional<record::MessageStep> last;
  for (const auto& line : lines) {
    auto step = reader.read(line.text);
    REQUIRE_MESSAGE(step, line.text, step.error().message);
    if (auto* message = std::get_if<record::MessageStep>(&*step)) last = std::move(*message);
  }
  REQUIRE(last);
  return *std::move(last);
}

std::string fault_of(std::string_view line) {
  record::Reader reader;
  const auto step = reader.read(line);
  return step ? std::string("none") : step.error().message;
}

}  // namespace

TEST_CASE("An object of every kind is read as it was written, with every field that is used") {
  for (const auto kind : k8s::kAllKinds) {
    CAPTURE(k8s::to_string(kind));
    const auto object = sample_of(kind);
    const auto lines = lines_of(Message(std::in_place_type<k8s::Delivery>, k8s::Upsert{object}));
    REQUIRE(lines.size() == 1);
    CHECK(lines.front().text.find('\n') == lines.front().text.size() - 1);
    const auto back = read_back(lines);
    const auto& delivery = std::get<k8s::Delivery>(back.message);
    CHECK(std::get<k8s::Upsert>(delivery).object == object);
  }
}

TEST_CASE("A list is read as it was written, but for pods that hold no device and report of none") {
  k8s::Pod other;
  other.meta.name = "web";
  other.meta.uid = "u";
  k8s::Snapshot list{.kind = k8s::Kind::Pod, .objects = {sample_of(k8s::Kind::Pod), other}};
  list.served = false;
  list.api_version = "v1";
  list.went_back = true;
  list.unreadable = {{.kind = k8s::Kind::Pod, .ns = "a", .name = "b", .uid = "c", .why = "\"\\\n\x01 \xff"}};
  const auto back = read_back(lines_of(Message(std::in_place_type<k8s::Delivery>, list)));
  const auto& read = std::get<k8s::Snapshot>(std::get<k8s::Delivery>(back.message));
  REQUIRE(read.objects.size() == 1);
  CHECK(read.objects.front() == list.objects.front());
  CHECK_FALSE(read.served);
  CHECK(read.api_version == "v1");
  CHECK(read.went_back);
  REQUIRE(read.unreadable.size() == 1);
  CHECK(read.unreadable.front().why == "\"\\\n\x01 \xef\xbf\xbd");
}

TEST_CASE("A configuration is read as it was written, whatever it says") {
  const std::array files = {
      ConfigFile{.name = "all", .text = test::read_fixture("../../manifests/examples/all-keys.yaml")}};
  const auto config = parse_config(files);
  REQUIRE(config);
  Policy policy;
  policy.policies = config->policies;
  policy.limits = config->limits;
  // Only that there is one.
  policy.limits.webhook = WebhookRules{.url = {}, .secret_file = {}, .per_minute = policy.limits.webhook->per_minute};
  policy.mode_cap = Mode::Enforce;
  policy.own_namespace = "dhc";
  policy.own_pod_uid = "uid";
  policy.brake_release = "2026-11-20T12:00:00Z";
  policy.cap_release = "2026-11-20T12:00:01Z";
  policy.pause_until = "2026-11-20T12:00:02Z";
  policy.pause_reason = "why";
  policy.pauses = policy.limits.pauses;
  policy.source = Subject{.kind = "ConfigMap", .ns = "dhc", .name = "c", .uid = "u"};
  policy.events = false;
  policy.status = true;
  const auto same = [](const Policy& one) {
    const auto back = read_back(lines_of(PolicyChanged{std::make_shared<Policy>(one)}));
    return *std::get<PolicyChanged>(back.message).policy == one;
  };
  CHECK(same(policy));
  CHECK(same(Policy{}));
  // The opposite of every default: what is left out must be what a reader takes it for.
  auto& one = policy.policies.front();
  one.mode = Mode::Off;
  one.after = Millis(0);
  one.match.health = {};
  one.evict = EvictRules{.after = Millis(0),
                         .grace_period_seconds = 0,
                         .cordon_wait = Millis(0),
                         .bare_pods = true,
                         .shared_claims_together = true,
                         .groups_together = true,
                         .untainted = true,
                         .no_replacement_wait = Millis(0),
                         .hold_without_replacement = true,
                         .notice = NoticeRules{.deadline = Millis(0), .extend_up_to = Millis(0), .whole_owner = true}};
  one.taint = TaintRules{
      .device = TaintRules::Device::Never, .node = true, .node_at_least_devices = 0, .node_at_least_percent = 0};
  one.job_retry = JobRetryRules{.credit = false,
                                .max_per_job = 0,
                                .settle = Millis(0),
                                .not_creditable = JobRetryRules::NotCreditable::Evict,
                                .take_back = true,
                                .recreate_once = true,
                                .rejections = 0,
                                .rejections_within = Millis(0),
                                .taints_rejecting_node = true};
  one.recover.healthy_for = Millis(0);
  one.recover.hold = Millis(0);
  one.recover.probation = false;
  one.recover.half_life = Millis(0);
  one.recover.quarantine_above = 0.1;
  one.enforce_on = EnforceOn{.namespaces = {}, .nodes = {}, .percent = 0};
  policy.limits.evictions_per_minute = 0;
  policy.limits.max_in_flight = 0;
  policy.limits.per_node = 0;
  policy.limits.per_owner = 0;
  policy.limits.taints_per_minute = 0;
  policy.limits.brake_percent = 0;
  policy.limits.brake_at_least = 0;
  policy.limits.brake_within = Millis(0);
  policy.limits.brake_trial_after = Millis(0);
  policy.limits.brake_trial_runs = Millis(0);
  policy.limits.counted_grace = Millis(0);
  policy.limits.suspect_after = 0;
  for (auto* cap : {&policy.limits.cap_cluster, &policy.limits.cap_node, &policy.limits.cap_per_day,
                    &policy.limits.cap_owner_per_day})
    *cap = Cap{.percent = 0, .at_least = 0};
  CHECK(same(policy));
}

TEST_CASE("Whatever becomes of an action is read as it was written") {
  for (int number = 0; number <= static_cast<int>(ErrorKind::Malformed); ++number) {
    const Error error{.kind = static_cast<ErrorKind>(number), .message = "why", .retry_after = Millis(5)};
    Outcome outcome{.action = {}, .status = std::unexpected(error)};
    outcome.sight = OwnerSight{.state = OwnerSight::State::Found, .meta = {}, .why = "w", .at = MonoTime(Millis(7))};
    outcome.reads = {{.kind = k8s::Kind::ResourceClaim,
                      .ns = "a",
                      .name = "b",
                      .held_uid = "c",
                      .held_version = "d",
                      .uid = "e",
                      .version = "f"}};
    const auto back = read_back(lines_of(outcome, 42));
    const auto& read = std::get<Outcome>(back.message);
    CHECK(back.answers == 42);
    REQUIRE_FALSE(read.status);
    CHECK(read.status.error() == error);
    CHECK(read.sight == outcome.sight);
    CHECK(read.reads == outcome.reads);
  }
  CHECK(std::get<Outcome>(read_back(lines_of(Outcome{.action = {}, .status = {}}, 1)).message).status);
}

TEST_CASE("All other messages are read as they were written") {
  const auto told =
      k8s::Told{.kind = k8s::Kind::ConfigMap, .name = "n", .word = k8s::WatchWord::Doubted, .at = MonoTime(Millis(12))};
  const auto told_back = read_back(lines_of(Message(std::in_place_type<k8s::Delivery>, told)));
  const auto& told_read = std::get<k8s::Told>(std::get<k8s::Delivery>(told_back.message));
  CHECK(told_read.kind == told.kind);
  CHECK(told_read.name == told.name);
  CHECK(told_read.word == told.word);
  CHECK(told_read.at == told.at);
  const k8s::Remove gone{.kind = k8s::Kind::Node, .ns = "", .name = "n", .uid = "u"};
  const auto gone_back = read_back(lines_of(Message(std::in_place_type<k8s::Delivery>, gone)));
  const auto& gone_read = std::get<k8s::Remove>(std::get<k8s::Delivery>(gone_back.message));
  CHECK(gone_read.kind == gone.kind);
  CHECK(gone_read.name == gone.name);
  CHECK(gone_read.uid == gone.uid);
  CHECK_FALSE(std::get<Leading>(read_back(lines_of(Leading{false})).message).leads);
  CHECK(std::get<ServerClockSeen>(read_back(lines_of(ServerClockSeen{Millis(-9)})).message).ahead == Millis(-9));
  CHECK(std::get<WebhookSeen>(read_back(lines_of(WebhookSeen{"503"})).message).problem == "503");
  CHECK_FALSE(std::get<EarlierState>(read_back(lines_of(EarlierState{})).message).map);
  k8s::ConfigMap earlier;
  earlier.meta.name = std::string(kStateName);
  earlier.data = {{"k", "v"}};
  CHECK(std::get<EarlierState>(read_back(lines_of(EarlierState{earlier})).message).map == earlier);
  const auto refused = read_back(lines_of(PolicyRejected{.why = "w", .source = Subject{"ConfigMap", "", "", ""}}));
  CHECK(std::get<PolicyRejected>(refused.message).why == "w");
  CHECK(std::get<PolicyRejected>(refused.message).source->kind == "ConfigMap");
}

TEST_CASE("Of the webhook no more is recorded than that there is one: its URL may hold a token") {
  Policy policy;
  policy.limits.webhook =
      WebhookRules{.url = {.host = "hooks.example.com", .target = "/t0ken"}, .secret_file = "/etc/s3cret"};
  const auto lines = lines_of(PolicyChanged{std::make_shared<const Policy>(policy)});
  REQUIRE(lines.size() == 1);
  for (const std::string_view word : {"hooks", "t0ken", "s3cret"}) CHECK_FALSE(lines.front().text.contains(word));
  CHECK(std::get<PolicyChanged>(read_back(lines).message).policy->limits.webhook ==
        WebhookRules{.url = {}, .secret_file = {}});
}

TEST_CASE("Nothing of environments, arguments, others' annotations, Secrets or ConfigMaps is recorded") {
  const std::string pod = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"d","uid":"u",
    "resourceVersion":"1","annotations":{"vault.example.com/token":"hunter2","device-health.io/opt-out":"true"}},
    "spec":{"nodeName":"n","containers":[{"name":"c","image":"registry.example.com/train:7",
      "args":["--password=hunter2"],"command":["hunter2"],
      "env":[{"name":"TOKEN","value":"hunter2"}],"envFrom":[{"secretRef":{"name":"hunter2"}}],
      "resources":{"limits":{"example.com/gpu":"1"}}}],
      "volumes":[{"name":"v","secret":{"secretName":"hunter2"}}],"imagePullSecrets":[{"name":"hunter2"}]},
    "status":{"phase":"Running","containerStatuses":[{"name":"c","state":{"running":{}},
      "allocatedResourcesStatus":[{"name":"example.com/gpu","resources":[{"resourceID":"g","health":"Unhealthy"}]}]}]}})";
  const auto object = k8s::Decoder(k8s::Kind::Pod, kKeptFields).decode_object(pod);
  REQUIRE(object);
  k8s::ConfigMap map;
  map.meta.name = "app-settings";
  map.data = {{"password", "hunter2"}};
  std::string all;
  for (const auto& each : {*object, k8s::Object(map)}) {
    for (const auto& line : lines_of(Message(std::in_place_type<k8s::Delivery>, k8s::Upsert{each}))) all += line.text;
  }
  CHECK(all.find("hunter2") == std::string::npos);
  CHECK(all.find("Unhealthy") == std::string::npos);  // by its number
  CHECK(all.find("device-health.io/opt-out") != std::string::npos);
  CHECK(all.find("registry.example.com/train:7") != std::string::npos);  // who runs it may be suspected
}

TEST_CASE("What is no line of a recording is refused with the reason") {
  CHECK(fault_of("{").starts_with("not JSON"));
  CHECK(fault_of("[]") == "not an object");
  CHECK(fault_of(R"({"fish":1})") == "fish: no line of a recording begins so");
  CHECK(fault_of(R"({"take":[1,2]})") == "take: it comes before the first `base`");
  CHECK(fault_of(R"({"base":[1]})") == "base: not two whole numbers");
  CHECK(fault_of(R"({"Pod":{"meta":{"name":7}}})") == "Pod: meta.name is not text");
  CHECK(fault_of(R"({"Pod":{"phase":9}})") == "Pod: phase is not a known number");
  CHECK(fault_of(R"({"told":{"kind":"Fish"}})") == "told: kind is not a known word");
  CHECK(fault_of(R"({"recording":"other","version":1})") == "recording: not a recording of this program");
  const auto newer = fault_of(R"({"recording":"device-health-controller","version":2,"program":"9.0.0"})");
  CHECK(newer ==
        "recording: version 2 of the format, written by 9.0.0, is newer than version 1, which this program reads: "
        "replay it with that program or a later one");
  record::Reader reader;
  CHECK(reader.read(R"({"list":{"kind":"Pod","n":2}})"));
  const auto step = reader.read(R"({"base":[1,2]})");
  REQUIRE_FALSE(step);
  CHECK(step.error().message == "a list of Pod ends 2 objects too early");
}

TEST_CASE("Every line begins as the documentation of the format says") {
  const auto base = record::base_of({.mono = MonoTime(Millis(5)), .wall = WallTime(std::chrono::microseconds(7000))});
  CHECK(record::base_line(base).text == "{\"base\":[5,7000]}\n");
  CHECK(record::take_line({.ms = 3, .us = -4}).text == "{\"take\":[3,-4]}\n");
  const std::vector<record::Stamp> idle = {{.ms = 10, .us = 1}, {.ms = 5010, .us = 2}};
  CHECK(record::idle_line(idle).text == "{\"idle\":[10,1,5000,2]}\n");
  CHECK(record::begun_line().text == "{\"begun\":true}\n");
  CHECK(record::file_line("r", 3).text.starts_with(
      R"({"recording":"device-health-controller","version":1,"run":"r","file":3,"program":")"));
}
