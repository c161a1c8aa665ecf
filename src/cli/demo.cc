#include "cli/demo.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "app/application.h"
#include "app/clock.h"
#include "app/signals.h"
#include "cli/demo_account.h"
#include "cli/demo_tally.h"
#include "k8s-client/auth/access.h"
#include "k8s-client/auth/kubeconfig.h"
#include "k8s-client/transport_factory.h"
#include "simulator/script/demo_script.h"
#include "simulator/server.h"

namespace dhc::cli {

namespace {
constexpr Millis kFrame{20};
// Before the end nothing more breaks, so that what has begun can be finished and counted.
constexpr Millis kLongestSettling{6000};

/// The cluster's time, which runs `speed` times as fast as ours.
struct FastClock {
  Now start;
  double speed;
  [[nodiscard]] Now operator()() const {
    const Now now = read_now();
    const auto passed = Millis(static_cast<Millis::rep>(static_cast<double>((now.mono - start.mono).count()) * speed));
    return {.mono = start.mono + passed, .wall = start.wall + passed};
  }
};

Millis faster(Millis time, double speed) {
  return Millis(static_cast<Millis::rep>(static_cast<double>(time.count()) / speed));
}

/// Short windows, so that there is something to see, and limits wide enough for it.
Policy demo_policy(double speed) {
  DevicePolicy all;
  all.name = "demo";
  all.mode = Mode::Enforce;
  all.after = faster(Seconds(2), speed);
  all.evict = EvictRules{};
  Policy policy;
  policy.policies.push_back(std::move(all));
  policy.limits.evictions_per_minute = 600;
  policy.limits.brake_percent = 60;
  policy.limits.brake_within = faster(Seconds(30), speed);
  policy.limits.cap_cluster = {.percent = 100, .at_least = 0};
  policy.limits.cap_node = {.percent = 100, .at_least = 0};
  policy.limits.cap_per_day = {.percent = 100, .at_least = 1000};
  return policy;
}

Result<std::shared_ptr<const k8s::Client>> client_of(const sim::Server& server) {
  auto config = k8s::parse_kubeconfig("demo", server.kubeconfig());
  if (!config) return std::unexpected(std::move(config.error()));
  auto context = k8s::choose_context(*config, {});
  if (!context) return std::unexpected(std::move(context.error()));
  auto access = k8s::make_kube_access(*context, {});
  if (!access) return std::unexpected(std::move(access.error()));
  auto tls = [credentials = access->credentials](std::stop_token stop) { return credentials->tls(std::move(stop)); };
  return std::make_shared<const k8s::Client>(k8s::make_transport(access->endpoint, std::move(tls)), access->credentials,
                                             "device-health-controller/demo");
}

/// The demo while it runs: the script on one thread, the controller on the caller's.
class Stage {
 public:
  Stage(const DemoOptions& options, Signals& signals)
      : options_(options),
        signals_(signals),
        start_(read_now()),
        account_(start_.mono),
        script_(options.seed),
        server_(options.seed, FastClock{.start = start_, .speed = options.speed}) {}

  int play();

 private:
  void direct(const std::stop_token& stop);
  void advance();
  int finish(std::span<const Verdict> verdicts);

  const DemoOptions options_;
  Signals& signals_;
  const Now start_;
  DemoAccount account_;
  sim::DemoScript script_;
  DemoTally tally_;
  sim::Server server_;
};

void Stage::advance() {
  server_.with_cluster([&](sim::Cluster& cluster, const Now& now) {
    for (const auto& event : script_.advance(cluster, now)) {
      tally_.count(event);
      account_.befell(event);
    }
  });
}

void Stage::direct(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any bell;
  const auto settling = options_.duration ? std::min(kLongestSettling, *options_.duration / 3) : Millis(0);
  while (!stop.stop_requested() && !signals_.token().stop_requested()) {
    const auto passed = mono_now() - start_.mono;
    if (options_.duration && passed >= *options_.duration) return signals_.request_stop();
    if (!options_.duration || passed < *options_.duration - settling) advance();
    std::unique_lock lock(mutex);
    (void)bell.wait_for(lock, stop, kFrame, [] { return false; });
  }
}

int Stage::finish(std::span<const Verdict> verdicts) {
  std::vector<std::string> evicted;
  server_.with_cluster([&](sim::Cluster& cluster, const Now&) { evicted = cluster.evictions(); });
  const auto end = end_of(tally_, evicted, verdicts);
  account_.say("\n" + end.text);
  // Whoever leaves in the middle leaves evictions unfinished.
  return end.exact || signals_.signalled() ? 0 : 1;
}

int Stage::play() {
  const auto client = client_of(server_);
  if (!client) {
    account_.warn(client.error().message);
    return 1;
  }
  server_.with_cluster([&](sim::Cluster& cluster, const Now& now) { script_.set_up(cluster, now); });
  Log log(LogFormat::Text, LogLevel::Warn, [this](std::string_view line) { account_.warn(line); });
  AppSettings settings;
  settings.frame = {.mode_cap = Mode::Enforce, .events = true, .own_namespace = {}, .own_pod_uid = {}};
  settings.policy = demo_policy(options_.speed);
  settings.reporting_instance = "demo";
  settings.metrics_address = "0";
  settings.health_address = "0";
  settings.detail_address = "0";
  settings.cluster = "the demo's cluster";
  auto application = Application::make(std::move(settings), *client, log,
                                       {.verdict_begun = [this](const Verdict& verdict) { account_.decided(verdict); },
                                        .outcome = [this](const Outcome& outcome) { account_.done(outcome); }});
  if (!application) {
    account_.warn(application.error().message);
    return 1;
  }
  account_.say(
      fmt::format("A simulated cluster of three nodes at https://127.0.0.1:{}, the controller enforcing, seed {}.\n"
                  "A device in use breaks every few seconds. Ctrl-C ends it.\n\n",
                  server_.port(), options_.seed));
  std::jthread director([this](const std::stop_token& stop) { direct(stop); });
  (*application)->run(signals_.token());
  director = {};
  return finish(*(*application)->verdicts());
}
}  // namespace

int demo(const DemoOptions& options) {
  Signals signals;
  try {
    return Stage(options, signals).play();
  } catch (const std::exception& error) {
    // The simulator's server: no port or no certificate.
    std::fputs(fmt::format("error: the demo cannot start: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}

}  // namespace dhc::cli
