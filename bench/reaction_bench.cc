// From the bytes of a watch event to the bytes of the eviction request: split, decode, World, plan, request text. All
// waits of the policy are 0 and nothing limits, so that what is left is our own work. The network, TLS and the requests
// before the eviction are not in it: bench/peer has those.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/controller.h"
#include "bench/benches.h"
#include "bench/first_lists.h"
#include "bench/synthetic_pod.h"
#include "domain/contract/names.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/protocol/http_request_text.h"
#include "k8s-client/protocol/watch_session.h"
#include "reconcilers/eviction/build.h"

namespace dhc::bench {

namespace {

using nlohmann::json;

constexpr int kPods = 20'000;
constexpr int kEvents = 1'000;

k8s::Node node_of(int number) {
  k8s::Node node;
  node.meta.name = fmt::format("gpu-node-{}", number);
  node.meta.uid = node.meta.name;
  node.ready = true;
  node.boot_id = "boot";
  node.capacity = {{"nvidia.com/gpu", 9}};
  node.allocatable = {{"nvidia.com/gpu", 8}};  // already shows the loss of one device, and no plugin looks silent
  return node;
}

k8s::Object owner_of(const k8s::Meta& pod) {
  k8s::Job owner;
  owner.meta.ns = pod.ns;
  owner.meta.name = pod.controller->name;
  owner.meta.uid = pod.controller->uid;
  return owner;
}

k8s::Namespace namespace_of(int number) {
  k8s::Namespace ns;
  ns.meta.name = fmt::format("team-{}", number);
  ns.meta.uid = ns.meta.name;
  return ns;
}

/// The pod's device has turned Unhealthy, and our condition says so: the last event before the eviction.
std::string broken_line(int number) {
  auto pod = json::parse(to_json({number, true}));
  auto& device = pod["status"]["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"][0];
  device["health"] = "Unhealthy";
  const auto key = fmt::format("{}/nvidia.com/gpu/{}", pod["spec"]["nodeName"].get<std::string>(),
                               device["resourceID"].get<std::string>());
  pod["status"]["conditions"].push_back(
      {{"type", "device-health.io/DeviceUnhealthy"},
       {"status", "True"},
       {"reason", "DeviceUnhealthy"},
       {"message", key + " unhealthy since 2024-10-04T00:00:00Z (policy p); next: eviction"},
       {"lastTransitionTime", "2024-10-04T00:00:00Z"}});
  pod["metadata"]["resourceVersion"] = std::to_string(2'000'000 + number);
  return json{{"type", "MODIFIED"}, {"object", pod}}.dump() + "\n";
}

Controller filled_controller() {
  Policy policy;
  policy.mode_cap = Mode::Enforce;
  policy.events = false;
  EvictRules evict;
  evict.no_replacement_wait = Millis(0);
  policy.policies.push_back(DevicePolicy{.name = "p", .mode = Mode::Enforce, .after = Millis(0), .evict = evict});
  policy.limits = no_limits();
  std::vector<Message> messages;
  messages.emplace_back(PolicyChanged{std::make_shared<const Policy>(policy)});
  for (const auto kind : k8s::kAllKinds) {
    k8s::Snapshot snapshot{.kind = kind, .objects = {}, .served = true};
    if (kind == k8s::Kind::Pod || kind == k8s::Kind::Job) {
      k8s::Decoder decoder(k8s::Kind::Pod, kKeptFields);
      for (int i = 0; i < kPods; ++i) {
        auto pod = decoder.decode_object(to_json({i, true})).value();
        snapshot.objects.push_back(kind == k8s::Kind::Pod ? std::move(pod) : owner_of(k8s::meta_of(pod)));
      }
    }
    if (kind == k8s::Kind::Namespace) {
      for (int i = 0; i < 50; ++i) snapshot.objects.emplace_back(namespace_of(i));
    }
    if (kind == k8s::Kind::Node) {
      for (int i = 0; i < kPods / 8; ++i) snapshot.objects.emplace_back(node_of(i));
    }
    messages.emplace_back(k8s::Delivery(std::move(snapshot)));
  }
  Controller controller;
  (void)controller.turn(messages, at(Millis(0)));
  return controller;
}

/// Brings the session into its watching state with an empty list, so that lines become Upserts.
k8s::WatchSession watching() {
  k8s::WatchSession session({.kind = k8s::Kind::Pod, .ns = {}, .name = {}, .kept = kKeptFields});
  std::vector<k8s::Delivery> out;
  (void)session.next(at(Millis(0)), 0.5);
  (void)session.feed(
      R"({"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}})"
      "\n",
      at(Millis(0)), out);
  return session;
}

}  // namespace

bool reaction() {
  auto controller = filled_controller();
  auto session = watching();
  std::vector<double> micros;
  int unanswered = 0;
  for (int i = 0; i < kEvents; ++i) {
    const int number = i * (kPods / kEvents);
    const auto line = broken_line(number);
    const auto now = at(Seconds(60 + i));
    const auto began = cpu_millis();
    std::vector<k8s::Delivery> deliveries;
    (void)session.feed(line, now, deliveries);
    std::vector<Message> messages;
    for (auto& delivery : deliveries) messages.emplace_back(std::move(delivery));
    const auto turn = controller.turn(messages, now);
    std::size_t written = 0;
    for (const auto& action : turn.actions) {
      const auto* evict = std::get_if<eviction::EvictPod>(&action);
      if (evict == nullptr) continue;
      written += k8s::build_request_text(eviction::build_eviction(*evict).value(), "kubernetes.default.svc", "")
                     .value()
                     .size();
    }
    micros.push_back((cpu_millis() - began) * 1000);
    if (written == 0) ++unanswered;
    // Gone, as after its grace period: the next event finds a quiet cluster again.
    const auto removed = json::parse(to_json({number, true}));
    std::vector<Message> after;
    for (const auto& action : turn.actions) after.emplace_back(Outcome{action, {}});
    after.emplace_back(k8s::Delivery(k8s::Remove{.kind = k8s::Kind::Pod,
                                                 .ns = removed["metadata"]["namespace"],
                                                 .name = removed["metadata"]["name"],
                                                 .uid = removed["metadata"]["uid"]}));
    (void)controller.turn(after, now);
  }
  std::ranges::sort(micros);
  const auto percentile = [&](double part) {
    return micros[static_cast<std::size_t>(part * static_cast<double>(micros.size() - 1))];
  };
  fmt::print("\n{:<44} {:>8} {:>12} {:>12}\n", "watch bytes to eviction request, us of CPU", "events", "p50", "p99");
  fmt::print("{:<44} {:>8} {:>12.0f} {:>12.0f}\n", fmt::format("{} pods known", kPods), kEvents, percentile(0.5),
             percentile(0.99));
  if (unanswered != 0) fmt::print("{} events led to no eviction: the figures above do not count\n", unanswered);
  return unanswered == 0;
}

}  // namespace dhc::bench
