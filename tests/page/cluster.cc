// What the tests of the live page look at: a simulated cluster that does what its standard input says, one line a
// command; or, with
// --synthetic N, the page itself over N made-up nodes, for measuring the browser.
//
// The first line that it prints is the path of a kubeconfig, or the page's address.
#include <cstdio>
#include <iostream>
#include <mutex>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/admin_server.h"
#include "app/clock.h"
#include "app/live/live_feed.h"
#include "app/pages.h"
#include "simulator/server.h"

namespace {
using dhc::sim::Cluster;
using Json = nlohmann::ordered_json;
using Part = dhc::OverviewLog::Part;

constexpr const char* kResource = "example.com/gpu";
constexpr const char* kDriver = "gpu.example.com";

dhc::sim::PodShape pod_of(const std::string& resource, const std::string& device_class) {
  dhc::sim::PodShape shape;
  shape.resource = resource;
  shape.device_class = device_class;
  shape.grace_seconds = 5;
  return shape;
}

void set_up(Cluster& cluster) {
  cluster.add_namespace("dhc");
  cluster.lags().pod_sync = dhc::Millis(100);  // what a kubelet takes to notice is not the page's
  for (int i = 1; i <= 12; ++i) {
    cluster.add_node({fmt::format("gpu-node-{:02}", i), {{kResource, 4}}, {{kDriver, 8}}, {}});
  }
  cluster.create_deployment("default", "inference", 16, pod_of(kResource, {}));
  cluster.create_deployment("default", "render", 30, pod_of({}, kDriver));
  cluster.create_deployment("default", "keep", 4, pod_of({}, kDriver), {{"device-health.io/opt-out", "true"}});
  dhc::sim::JobShape training;
  training.ns = "default";
  training.name = "training";
  training.parallelism = 6;
  training.completions = 6;
  training.shape = pod_of(kResource, {});
  cluster.create_job(training);
}

bool obey(Cluster& cluster, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  std::string node;
  std::string device;
  words >> verb >> node >> device >> std::ws;
  std::string said;
  std::getline(words, said);
  if (verb == "break") cluster.set_device_health(node, device, "Unhealthy", said);
  if (verb == "unknown") cluster.set_device_health(node, device, "Unknown");
  if (verb == "repair") cluster.set_device_health(node, device, "Healthy");
  if (verb == "cordon") cluster.cordon(node, true);
  if (verb == "notready") cluster.set_node_ready(node, false);
  if (verb == "held") {
    for (const auto& pod : cluster.holders(node, device)) fmt::print("{} ", pod);
    fmt::print("\n");
  }
  if (verb == "done") fmt::print("done\n");
  std::fflush(stdout);
  return verb != "quit";
}

int play(const char* kubeconfig) {
  dhc::sim::Server server(1, dhc::read_now);
  if (!server.write_kubeconfig(kubeconfig)) return 1;
  server.with_cluster([](Cluster& cluster, const dhc::Now&) { set_up(cluster); });
  fmt::print("{}\n", kubeconfig);
  std::fflush(stdout);
  std::string line;
  bool goes_on = true;
  while (goes_on && std::getline(std::cin, line)) {
    server.with_cluster([&](Cluster& cluster, const dhc::Now&) { goes_on = obey(cluster, line); });
  }
  return 0;
}

/// Nodes with eight devices each, all held; as the overview has them.
class Synthetic {
 public:
  explicit Synthetic(int nodes) : bad_(static_cast<std::size_t>(nodes) * 8) {}

  void flip(int count) {
    for (int i = 0; i < count; ++i) {
      auto flipped = bad_[random_() % bad_.size()];
      flipped = !flipped;
    }
  }

  [[nodiscard]] dhc::Overview overview() const {
    dhc::Overview overview;
    overview["limits"] =
        R"({"paused":false,"pausedBecause":"","pausedParts":[],"inFlight":0,"maxInFlight":5,"evictionsPerMinute":10,"perNode":2,"perOwner":1,)"
        R"("taintsPerMinute":60,"brakePercent":30,"brakeAtLeast":3,"brakeWithinSeconds":300})";
    overview["policies"] =
        R"([{"name":"gpus","mode":"enforce","effectiveMode":"enforce","afterSeconds":60,"taints":true,)"
        R"("credits":true,"evicts":true,"evictAfterSeconds":30}])";
    for (std::size_t node = 0; node < bad_.size() / 8; ++node) add_node(overview, node);
    return overview;
  }

 private:
  void add_node(dhc::Overview& overview, std::size_t node) const {
    const auto name = fmt::format("gpu-node-{:04}", node);
    std::string devices;
    for (std::size_t i = 0; i < 8; ++i) {
      const bool is_bad = bad_[node * 8 + i];
      devices += fmt::format(R"({}{{"id":"gpu-{}","health":"{}","pods":["team/train-{}"])", i == 0 ? "" : ",", i,
                             is_bad ? "Unhealthy" : "Healthy", node * 8 + i);
      devices += is_bad ? R"(,"incident":"open","taint":"ours"})" : "}";
      if (is_bad) add_verdict(overview, name, i, node * 8 + i);
    }
    overview["node/" + name] = fmt::format(
        R"({{"name":"{}","groups":[{{"scope":"gpu.example.com","pool":"{}","devices":[{}]}}]}})", name, name, devices);
  }
  static void add_verdict(dhc::Overview& overview, const std::string& node, std::size_t device, std::size_t pod) {
    const auto key = fmt::format("gpu.example.com/{}/gpu-{}", node, device);
    const Json verdict = {
        {"subject", {{"kind", "Pod"}, {"namespace", "team"}, {"name", fmt::format("train-{}", pod)}, {"uid", pod}}},
        {"device", key},
        {"policy", "gpus"},
        {"mode", "enforce"},
        {"gate", "caps"},
        {"reason", "CapReached"},
        {"message", "a cap is full"},
        {"since", "2026-11-20T18:23:16Z"},
        {"nextStepAt", nullptr}};
    overview["verdict/" + key] = verdict.dump();
  }

  std::vector<bool> bad_;
  std::mt19937 random_{1};
};

int play_synthetic(int nodes) {
  dhc::StatusStore store({});
  store.policy_loaded();
  dhc::LiveFeed feed(store);
  Synthetic cluster(nodes);
  cluster.flip(60);
  std::mutex mutex;
  const auto show = [&] {
    const std::lock_guard lock(mutex);
    store.turn_done(dhc::mono_now());
    feed.show(Part::Facts, dhc::overview_of_facts(store.facts(), dhc::read_now()));
    feed.show(Part::Cluster, cluster.overview());
  };
  feed.on_first_reader(show);
  const auto server = dhc::AdminServer::start(
      {.host = "127.0.0.1", .port = 0}, [&](std::string_view path) { return dhc::detail_page(store, path); },
      dhc::Audience::Loopback,
      {.path = std::string(dhc::kEventsPath),
       .open = [&](std::string_view place, std::function<void()> bell) { return feed.open(place, std::move(bell)); }});
  if (!server) return 1;
  fmt::print("{}\n", (*server)->address());
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    cluster.flip(std::stoi(line));
    show();
  }
  return 0;
}
}  // namespace

int main(int count, char** words) {
  if (count == 3 && std::string_view(words[1]) == "--synthetic") return play_synthetic(std::stoi(words[2]));
  return count == 2 ? play(words[1]) : 2;
}
