#include "cli/demo.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/live/live_page.h"
#include "app/signals.h"
#include "cli/demo_acts.h"
#include "cli/demo_play.h"
#include "cli/demo_screen.h"
#include "k8s-client/auth/access.h"
#include "k8s-client/auth/kubeconfig.h"
#include "k8s-client/transport_factory.h"
#include "simulator/server.h"

namespace dhc::cli {

namespace {
// A longer wait is said to be left out.
constexpr Millis kSaidWait = Seconds(90);

Result<k8s::Client> client_of(const sim::Server& server) {
  auto config = k8s::parse_kubeconfig("demo", server.kubeconfig());
  if (!config) return std::unexpected(std::move(config.error()));
  auto context = k8s::choose_context(*config, {});
  if (!context) return std::unexpected(std::move(context.error()));
  auto access = k8s::make_kube_access(*context, {});
  if (!access) return std::unexpected(std::move(access.error()));
  auto tls = [credentials = access->credentials](std::stop_token stop) { return credentials->tls(std::move(stop)); };
  return k8s::Client(k8s::make_transport(access->endpoint, std::move(tls)), access->credentials,
                     "device-health-controller/demo");
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int failed(std::string_view why, int code) {
  std::fputs(fmt::format("error: {}\n", why).c_str(), stderr);
  return code;
}

/// Tells acts at a reader's pace, until it is stopped.
class Teller {
 public:
  Teller(const DemoOptions& options, LivePage& page, std::stop_token stop)
      : options_(options), page_(page), stop_(std::move(stop)), look_(look_of_output()) {
    if (options.duration) ends_at_ = mono_now() + *options.duration;
  }

  /// False: the act cannot begin; the error is on standard error.
  [[nodiscard]] Status play(const DemoAct& act, std::uint64_t seed, std::size_t number, std::size_t count);
  [[nodiscard]] bool is_stopped() const { return stop_.stop_requested() || (ends_at_ && mono_now() >= *ends_at_); }
  [[nodiscard]] const DemoSum& sum() const { return sum_; }

 private:
  void tell(const DemoAct& act, DemoPlay& play);
  void pause(Millis time);

  const DemoOptions& options_;
  LivePage& page_;
  const std::stop_token stop_;
  const DemoLook look_;
  std::optional<MonoTime> ends_at_;
  DemoSum sum_;
};

void Teller::pause(Millis time) {
  auto left = std::chrono::duration_cast<Millis>(time / options_.speed);
  if (ends_at_) left = std::min(left, *ends_at_ - mono_now());
  std::mutex mutex;
  std::condition_variable_any bell;
  std::unique_lock lock(mutex);
  (void)bell.wait_for(lock, stop_, left, [] { return false; });
}

void Teller::tell(const DemoAct& act, DemoPlay& play) {
  std::optional<WallTime> last;
  while (!play.is_over() && !is_stopped()) {
    const auto lines = play.next();
    page_.show(play.overview(), play.verdicts(), play.now());
    if (lines.empty()) continue;
    if (last) {
      const auto wait = std::chrono::duration_cast<Millis>(lines.front().at - *last);
      if (wait >= kSaidWait) print(skipped(wait, look_));
      pause(shown_wait(act, wait));
    }
    last = lines.front().at;
    // The account will be of what has happened: it is told, however little time is left.
    for (const auto& line : lines) {
      print(painted(line, look_));
      if (&line != &lines.back()) pause(kForLine);
    }
  }
  if (!is_stopped()) pause(act.longest_wait);
}

Status Teller::play(const DemoAct& act, std::uint64_t seed, std::size_t number, std::size_t count) {
  DemoClock clock(demo_beginning());
  sim::Server server(seed, [&clock] { return clock(); });
  auto client = client_of(server);
  if (!client) return std::unexpected(std::move(client.error()));
  auto policy = policy_of(act);
  if (!policy) return std::unexpected(std::move(policy.error()));
  const auto with_cluster = [&server](const DemoPlace::Work& work) {
    server.with_cluster([&work](sim::Cluster& cluster, const Now&) { work(cluster); });
  };
  DemoPlay play(act, seed, {.with_cluster = with_cluster, .client = *std::move(client), .clock = clock},
                *std::move(policy));
  page_.show(play.overview(), play.verdicts(), play.now());
  print(heading(act, number, count, look_));
  pause(kForHeading);
  tell(act, play);
  sum_.add(play.sum());
  return {};
}
}  // namespace

int demo(const DemoOptions& options) {
  std::vector<const DemoAct*> acts;
  if (options.act.empty()) {
    for (const auto& act : demo_acts()) acts.push_back(&act);
  } else if (const auto* act = find_act(options.act); act != nullptr) {
    acts.push_back(act);
  } else {
    return failed(fmt::format("--act '{}' is not one of: {}; nor a number from 1 to {}", options.act, act_names(),
                              demo_acts().size()),
                  kUsage);
  }
  Signals signals;
  const auto page = LivePage::start();
  if (!page) return failed(page.error().message, 1);
  Teller teller(options, **page, signals.token());
  print(
      fmt::format("The controller against a simulated cluster, in {} of about half a minute; seed {}.\n"
                  "On the left is the cluster's own clock: what takes long there is shortened here.\n"
                  "The same as it happens in a browser: http://{}/\n"
                  "Ctrl-C ends the demo with its account.\n",
                  acts.size() == 1 ? "an act" : fmt::format("{} acts", acts.size()), options.seed, (*page)->address()));
  std::size_t played = 0;
  try {
    for (auto seed = options.seed;; ++seed) {
      std::size_t number = 0;
      for (const auto* act : acts) {
        if (teller.is_stopped()) break;
        ++played;
        const auto done = teller.play(*act, seed, ++number, acts.size());
        if (!done) return failed(done.error().message, 1);
      }
      if (!options.repeat || teller.is_stopped()) break;
    }
  } catch (const std::exception& error) {
    // The simulator's server: no port or no certificate.
    return failed(fmt::format("the demo cannot go on: {}", error.what()), 1);
  }
  std::string of;
  if (options.repeat) of = fmt::format(" of {} acts", played);
  if (!options.repeat && acts.size() > 1) of = fmt::format(" of {} of {} acts", played, acts.size());
  print(fmt::format("\nThe account{}{}:\n{}", of, teller.is_stopped() ? ", broken off" : "", teller.sum().text()));
  return teller.sum().wrong.empty() ? 0 : 1;
}

}  // namespace dhc::cli
