#include "app/application.h"

#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "app/access_check.h"
#include "app/admin_server.h"
#include "app/board.h"
#include "app/clock.h"
#include "app/executor.h"
#include "app/metrics.h"
#include "app/pages.h"
#include "app/policy_file.h"
#include "app/policy_map.h"
#include "app/trouble_log.h"
#include "k8s-client/watcher.h"

namespace dhc {

namespace {
constexpr std::size_t kInboxCapacity = 4096;
constexpr Seconds kAccessPatience{5};

std::vector<k8s::Kind> watched_kinds(const AppSettings& settings) {
  std::vector<k8s::Kind> kinds;
  for (const auto kind : k8s::kAllKinds) {
    if (kind != k8s::Kind::ConfigMap || settings.config_map) kinds.push_back(kind);
  }
  return kinds;
}
}  // namespace

struct Application::Parts {
  AppSettings settings;
  std::shared_ptr<const k8s::Client> client;
  Log& log;
  Listener listener;
  Board board;
  Metrics metrics;
  TroubleLog trouble;
  Inbox inbox{kInboxCapacity};
  std::stop_source stopping;
  PolicyDesk desk;
  std::mutex watchers_mutex;  // the list, which pages read while it is filled
  std::vector<std::unique_ptr<k8s::Watcher>> watchers;
  std::vector<std::unique_ptr<AdminServer>> servers;

  Parts(AppSettings s, std::shared_ptr<const k8s::Client> c, Log& l, Listener listen);
  Status serve();
  Status serve(std::string_view what, const std::string& address, PageMaker pages);
  void send(Message message);
  void reported(Executor::Done done);
  void start_watches();
  void start_configuration(std::optional<PolicyFile>& file);
  void stop();
  void read_config_map(const k8s::Delivery& delivery);
  void refresh();
};

Application::Parts::Parts(AppSettings s, std::shared_ptr<const k8s::Client> c, Log& l, Listener listen)
    : settings(std::move(s)),
      client(std::move(c)),
      log(l),
      listener(std::move(listen)),
      board(watched_kinds(settings)),
      trouble(log, settings.cluster),
      desk(settings.frame, [this](Message message) { send(std::move(message)); }, board, metrics, log) {}

void Application::Parts::send(Message message) {
  (void)inbox.push({.message = std::move(message), .at = stopwatch_now()}, stopping.get_token());
}

void Application::Parts::reported(Executor::Done done) {
  const bool evicted = std::holds_alternative<eviction::EvictPod>(done.outcome.action);
  if (evicted) metrics.reaction(done.begun - done.since);
  send(std::move(done.outcome));
}

Status Application::Parts::serve(std::string_view what, const std::string& text, PageMaker pages) {
  if (text == "0") return {};
  const auto address = parse_bind_address(text);
  if (!address) return std::unexpected(address.error());
  auto server = AdminServer::start(*address, std::move(pages));
  if (!server) return std::unexpected(std::move(server.error()));
  log.info("serving", {{"what", what}, {"address", (*server)->address()}});
  servers.push_back(std::move(*server));
  return {};
}

Status Application::Parts::serve() {
  if (auto health = serve("health", settings.health_address,
                          [this](std::string_view path) {
                            refresh();
                            return health_page(board, path);
                          });
      !health) {
    return health;
  }
  return serve("metrics", settings.metrics_address, [this](std::string_view path) {
    refresh();
    return metrics_page(metrics, path);
  });
}

void Application::Parts::refresh() {
  const std::lock_guard lock(watchers_mutex);
  for (const auto& watcher : watchers) {
    const auto status = watcher->status();
    const auto fact = watch_fact(status);
    board.watch(fact);
    metrics.show(status);
    if (status.state != k8s::WatchState::Stopped) trouble.note(status.kind, fact.problem);
  }
}

void Application::Parts::read_config_map(const k8s::Delivery& delivery) {
  if (auto read = read_policy_map(delivery, *settings.config_map)) desk.take(std::move(*read));
}

void Application::Parts::start_watches() {
  const std::lock_guard lock(watchers_mutex);
  for (const auto kind : watched_kinds(settings)) {
    const bool configuration = kind == k8s::Kind::ConfigMap;
    k8s::WatchTarget target{.kind = kind, .ns = {}, .name = {}};
    if (configuration) target = {.kind = kind, .ns = settings.config_map->ns, .name = settings.config_map->name};
    watchers.push_back(std::make_unique<k8s::Watcher>(
        std::move(target), client,
        k8s::WatcherCalls{
            .clock = read_now,
            .deliver =
                [this, configuration](k8s::Delivery delivery) {
                  configuration ? read_config_map(delivery) : send(std::move(delivery));
                },
            // An error that is gone again before the next refresh is still said.
            .show =
                [this](const k8s::WatchStatus& status) { trouble.note(status.kind, watch_fact(status).problem); }}));
  }
}

void Application::Parts::start_configuration(std::optional<PolicyFile>& file) {
  if (settings.config_map) return;  // its watch brings it
  if (!settings.config_file.empty()) {
    file.emplace(settings.config_file, desk);
    return;
  }
  if (!settings.policy) log.info("no configuration given: the built-in policy observes and does nothing");
  desk.take({.policy = settings.policy.value_or(built_in_policy()), .brake_release = {}, .source = {}});
}

void Application::Parts::stop() {
  const std::lock_guard lock(watchers_mutex);
  // All first, then join: they stop side by side.
  for (const auto& watcher : watchers) watcher->request_stop();
  watchers.clear();
}

Application::Application(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Application::~Application() = default;

std::shared_ptr<const std::vector<Verdict>> Application::verdicts() const { return parts_->board.verdicts(); }

Result<std::unique_ptr<Application>> Application::make(AppSettings settings, std::shared_ptr<const k8s::Client> client,
                                                       Log& log, Listener listener) {
  auto parts = std::make_unique<Parts>(std::move(settings), std::move(client), log, std::move(listener));
  if (auto served = parts->serve(); !served) return std::unexpected(std::move(served.error()));
  return std::unique_ptr<Application>(new Application(std::move(parts)));
}

void Application::run(const std::stop_token& stop) {
  auto& parts = *parts_;
  const std::stop_callback forward(stop, [&parts] { parts.stopping.request_stop(); });
  const auto token = parts.stopping.get_token();
  const auto& settings = parts.settings;
  const auto* map = settings.config_map ? &*settings.config_map : nullptr;
  // First of all, so that what is missing stands before its consequences; but not for long, credentials may take their
  // time.
  std::promise<void> asked;
  const auto heard = asked.get_future();
  const std::jthread asking(
      [&parts, &asked, token, verbs = needed_verbs(settings.frame.mode_cap, settings.frame.events, map)] {
        (void)check_access(verbs, *parts.client, parts.log, token);
        asked.set_value();
      });
  (void)heard.wait_for(kAccessPatience);
  Executor executor(*parts.client, settings.reporting_instance,
                    [&parts](Executor::Done done) { parts.reported(std::move(done)); });
  std::optional<PolicyFile> file;
  parts.start_configuration(file);
  parts.start_watches();
  RunLoop loop(
      parts.inbox, executor,
      {.board = parts.board, .metrics = parts.metrics, .log = parts.log, .refresh = [&parts] { parts.refresh(); }},
      parts.listener);
  loop.run(token);
  executor.request_stop();  // before the watchers are joined: both may wait for the same credentials
  parts.stop();
}

}  // namespace dhc
