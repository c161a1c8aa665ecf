#include "app/application.h"

#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "app/access_desk.h"
#include "app/admin_server.h"
#include "app/clock.h"
#include "app/clock_desk.h"
#include "app/earlier_state.h"
#include "app/executor.h"
#include "app/live/live_feed.h"
#include "app/metrics.h"
#include "app/pages.h"
#include "app/policy_file.h"
#include "app/policy_map.h"
#include "app/record/lines.h"
#include "app/record/recorder.h"
#include "app/status_store.h"
#include "app/trouble_log.h"
#include "app/webhook/webhook.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/watcher.h"

namespace dhc {

namespace {
constexpr std::size_t kInboxCapacity = 4096;
// Together well below the 5 s in which the process must end.
constexpr Millis kDrainPatience{2000};
constexpr Millis kReleasePatience{1500};

std::vector<k8s::Kind> watched_kinds(const AppSettings& settings) {
  std::vector<k8s::Kind> kinds;
  for (const auto kind : k8s::kAllKinds) {
    const bool has_map = settings.config_map || !settings.frame.own_namespace.empty();
    if (kind != k8s::Kind::ConfigMap || has_map) kinds.push_back(kind);
  }
  if (settings.election) kinds.push_back(k8s::Kind::Lease);
  return kinds;
}
}  // namespace

struct Application::Parts {
  AppSettings settings;
  std::shared_ptr<const k8s::Client> client;
  Log& log;
  StatusStore status_store;
  LiveFeed live{status_store};
  std::string detail_address;
  Metrics metrics;
  std::unique_ptr<record::RecordFiles> record_files;
  TroubleLog trouble;
  Inbox inbox{kInboxCapacity};
  ClockDesk clock_desk;
  std::stop_source stopping;
  std::unique_ptr<AccessDesk> access;  // outlives the threads that bring a configuration
  PolicyDesk desk;
  std::mutex watchers_mutex;  // the list, which pages read while it is filled
  std::vector<std::unique_ptr<k8s::Watcher>> watchers;
  std::mutex file_mutex;
  std::unique_ptr<PolicyFile> file;  // under file_mutex
  std::vector<std::unique_ptr<AdminServer>> servers;
  LeaderFence fence;
  std::unique_ptr<Elector> elector;

  Parts(AppSettings s, std::shared_ptr<const k8s::Client> c, Log& l);
  Status serve();
  Status start_recording();
  Result<std::string> serve(std::string_view what, const std::string& address, PageMaker pages, Audience audience,
                            EventStream events = {});
  void send(Message message);
  void note_policy(Message message);
  void reported(Executor::Done done);
  [[nodiscard]] bool tell_clock(Millis ahead);
  void start_watches();
  void list_afresh(const ViewDoubt& doubt);
  void start_watch(k8s::WatchTarget target, std::function<void(k8s::Delivery)> deliver);
  void start_election();
  void start_configuration();
  void reload();
  [[nodiscard]] std::unique_ptr<Webhook> make_webhook();
  void request_stop();
  void stop();
  void read_config_map(const k8s::Delivery& delivery);
  void note_trouble(const k8s::WatchStatus& status);
  void refresh();
};

Application::Parts::Parts(AppSettings s, std::shared_ptr<const k8s::Client> c, Log& l)
    : settings(std::move(s)),
      client(std::move(c)),
      log(l),
      status_store(watched_kinds(settings), settings.frame.mode_cap, settings.election.has_value()),
      trouble(log, settings.cluster),
      clock_desk([this](Millis ahead) { return tell_clock(ahead); }, status_store, metrics, log),
      desk(settings.frame, [this](Message message) { note_policy(std::move(message)); }, status_store, metrics, log) {
  live.on_first_reader([this] { inbox.nudge(); });
}

void Application::Parts::send(Message message) {
  (void)inbox.push({.message = std::move(message), .at = stopwatch_now()}, stopping.get_token());
}

void Application::Parts::note_policy(Message message) {
  if (const auto* changed = std::get_if<PolicyChanged>(&message); changed != nullptr && access) {
    access->look_at(changed->policy);
  }
  send(std::move(message));
}

bool Application::Parts::tell_clock(Millis ahead) {
  Received received{.message = ServerClockSeen{.ahead = ahead}, .at = stopwatch_now()};
  return inbox.try_push(received);
}

void Application::Parts::reported(Executor::Done done) {
  const bool evicted = std::holds_alternative<eviction::EvictPod>(done.outcome.action);
  if (evicted) metrics.reaction(done.begun - done.since);
  send(std::move(done.outcome));
}

/// Where it is really served; empty: it is not.
Result<std::string> Application::Parts::serve(std::string_view what, const std::string& text, PageMaker pages,
                                              Audience audience, EventStream events) {
  if (text == "0") return std::string();
  const auto address = parse_bind_address(text);
  if (!address) return std::unexpected(address.error());
  if (audience == Audience::Loopback && !is_loopback(*address)) {
    return fail(ErrorKind::Invalid,
                fmt::format("--detail-bind-address {}: detail names pods of every namespace and is served on the "
                            "loopback only: write 127.0.0.1:PORT, and reach it by kubectl port-forward",
                            text));
  }
  auto server = AdminServer::start(*address, std::move(pages), audience, std::move(events));
  if (!server) return std::unexpected(std::move(server.error()));
  log.info("serving", {{"what", what}, {"address", (*server)->address()}});
  servers.push_back(std::move(*server));
  return servers.back()->address();
}

Status Application::Parts::serve() {
  const auto refreshed = [this](auto page_of) {
    return [this, page_of](std::string_view path) {
      refresh();
      return page_of(path);
    };
  };
  const auto health =
      serve("health", settings.health_address,
            refreshed([this](std::string_view path) { return health_page(status_store, path); }), Audience::Everybody);
  if (!health) return std::unexpected(health.error());
  const auto detail =
      serve("detail", settings.detail_address,
            refreshed([this](std::string_view path) { return detail_page(status_store, path); }), Audience::Loopback,
            {.path = std::string(kEventsPath), .open = [this](std::string_view place, std::function<void()> bell) {
               return live.open(place, std::move(bell));
             }});
  if (!detail) return std::unexpected(detail.error());
  detail_address = *detail;
  const auto served =
      serve("metrics", settings.metrics_address,
            refreshed([this](std::string_view path) { return metrics_page(metrics, path); }), Audience::Everybody);
  if (!served) return std::unexpected(served.error());
  return {};
}

Status Application::Parts::start_recording() {
  if (!settings.record) return {};
  std::random_device random;
  auto run = fmt::format("{}-{:08x}", record::name_of_time(read_now().wall), random());
  const auto ended = [this](const std::string& why) {
    metrics.recording(false);
    log.error("recording ended: everything else goes on", {{"error", why}});
  };
  auto files = record::RecordFiles::open(*settings.record, run, ended);
  if (!files) return fail(ErrorKind::Invalid, "--record: " + files.error().message);
  record_files = std::move(*files);
  metrics.recording(true);
  log.info("recording", {{"folder", settings.record->folder}, {"run", run}});
  return {};
}

void Application::Parts::refresh() {
  if (record_files) metrics.recorded(record_files->bytes_written());
  const std::lock_guard lock(watchers_mutex);
  std::map<k8s::Kind, k8s::WatchStatus> by_kind;  // the configuration and the state are both ConfigMaps
  for (const auto& watcher : watchers) {
    const auto status = watcher->status();
    const auto [entry, is_first] = by_kind.try_emplace(status.kind, status);
    if (!is_first) entry->second = k8s::merged(entry->second, status);
  }
  for (const auto& [kind, status] : by_kind) {
    const auto fact = watch_fact(status);
    status_store.watch(fact);
    metrics.show(status, mono_now());
    note_trouble(status);
    trouble.note_back(kind, status.went_back, status.went_back_how);
  }
}

/// The end of a watch ends no trouble: a process that never watched does not watch again by that.
void Application::Parts::note_trouble(const k8s::WatchStatus& status) {
  if (status.state != k8s::WatchState::Stopped) trouble.note(status.kind, watch_fact(status).problem);
}

void Application::Parts::read_config_map(const k8s::Delivery& delivery) {
  // How old the configuration is, the pause with it, matters to whoever acts on it.
  if (const auto* told = std::get_if<k8s::Told>(&delivery)) return send(k8s::Delivery(*told));
  if (auto read = read_policy_map(delivery, *settings.config_map)) desk.take(std::move(*read));
}

void Application::Parts::start_watch(k8s::WatchTarget target, std::function<void(k8s::Delivery)> deliver) {
  target.kept = kKeptFields;
  target.wire = settings.wire_format;
  watchers.push_back(std::make_unique<k8s::Watcher>(
      std::move(target), client,
      k8s::WatcherCalls{
          .clock = read_now,
          .deliver = std::move(deliver),
          .answered = [this](const k8s::Response& answer, const Now& sent) { clock_desk.answered(answer, sent); },
          // An error that is gone again before the next refresh is still said.
          .show = [this](const k8s::WatchStatus& status) { note_trouble(status); }}));
}

void Application::Parts::list_afresh(const ViewDoubt& doubt) {
  const std::lock_guard lock(watchers_mutex);
  for (const auto& watcher : watchers) {
    if (watcher->target().kind == doubt.kind) watcher->doubt(doubt.why);
  }
}

void Application::Parts::start_watches() {
  const std::lock_guard lock(watchers_mutex);
  const auto to_controller = [this](k8s::Delivery delivery) { send(std::move(delivery)); };
  for (const auto kind : k8s::kAllKinds) {
    if (kind != k8s::Kind::ConfigMap) start_watch({.kind = kind, .ns = {}, .name = {}}, to_controller);
  }
  if (const auto& map = settings.config_map) {
    start_watch({.kind = k8s::Kind::ConfigMap, .ns = map->ns, .name = map->name},
                [this](const k8s::Delivery& delivery) { read_config_map(delivery); });
  }
  if (const auto& ns = settings.frame.own_namespace; !ns.empty()) {
    start_watch({.kind = k8s::Kind::ConfigMap, .ns = ns, .name = std::string(kIncidentsName)}, to_controller);
    start_watch({.kind = k8s::Kind::ConfigMap, .ns = ns, .name = std::string(kStateName)},
                [this](const k8s::Delivery& delivery) {
                  if (auto earlier = read_earlier_state(delivery)) send(*std::move(earlier));
                });
  }
}

void Application::Parts::start_election() {
  if (!settings.election) {
    log.info("leader election is off: acting as the only replica");
    return metrics.leading(true);
  }
  send(Leading{.leads = false});
  const auto show = [this, leads = false](const ElectionFact& fact) mutable {
    status_store.election(fact);
    metrics.leading(fact.leads);
    if (std::exchange(leads, fact.leads) != fact.leads) send(Leading{.leads = fact.leads});
  };
  elector = std::make_unique<Elector>(
      *settings.election, *client, fence, show, log,
      [this](const k8s::Response& answer, const Now& sent) { clock_desk.answered(answer, sent); });
  const std::lock_guard lock(watchers_mutex);
  start_watch({.kind = k8s::Kind::Lease, .ns = settings.election->subject.ns, .name = settings.election->subject.name},
              [this](k8s::Delivery delivery) { elector->observed(std::move(delivery)); });
}

void Application::Parts::start_configuration() {
  if (settings.config_map) return;  // its watch brings it
  if (!settings.config_file.empty()) {
    const std::lock_guard lock(file_mutex);
    file = std::make_unique<PolicyFile>(settings.config_file, desk);
    return;
  }
  log.info("no configuration given: the built-in policy observes and does nothing");
  desk.take({.policy = built_in_policy(), .brake_release = {}, .cap_release = {}, .source = {}});
}

void Application::Parts::reload() {
  if (!settings.config_map && settings.config_file.empty()) {
    return log.info("asked to read the configuration again: none was given");
  }
  log.info("asked to read the configuration again");
  desk.expect();
  {
    const std::lock_guard lock(file_mutex);
    if (file) file->look();
  }
  const std::lock_guard lock(watchers_mutex);
  for (const auto& watcher : watchers) {
    const auto& target = watcher->target();
    const bool is_it = settings.config_map && target.kind == k8s::Kind::ConfigMap &&
                       target.ns == settings.config_map->ns && target.name == settings.config_map->name;
    if (is_it) watcher->list_afresh();
  }
}

std::unique_ptr<Webhook> Application::Parts::make_webhook() {
  return std::make_unique<Webhook>(
      settings.frame.own_namespace,
      WebhookCalls{
          .ended = [this](WebhookEnd end) { metrics.webhook(to_string(end)); },
          .problem = [this](const std::string& words) { send(WebhookSeen{.problem = words}); },
          .admit = [this](k8s::Request& request) { return settings.election ? fence.admit(request) : Status(); }},
      log);
}

void Application::Parts::request_stop() {
  const std::lock_guard lock(watchers_mutex);
  for (const auto& watcher : watchers) watcher->request_stop();
}

void Application::Parts::stop() {
  // All first, then join: they stop side by side.
  request_stop();
  const std::lock_guard lock(watchers_mutex);
  watchers.clear();
}

Application::Application(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Application::~Application() = default;

const std::string& Application::detail_address() const { return parts_->detail_address; }

std::shared_ptr<const std::vector<Verdict>> Application::verdicts() const { return parts_->status_store.verdicts(); }

Result<std::unique_ptr<Application>> Application::make(AppSettings settings, std::shared_ptr<const k8s::Client> client,
                                                       Log& log) {
  auto parts = std::make_unique<Parts>(std::move(settings), std::move(client), log);
  if (auto recording = parts->start_recording(); !recording) return std::unexpected(std::move(recording.error()));
  if (auto served = parts->serve(); !served) return std::unexpected(std::move(served.error()));
  return std::unique_ptr<Application>(new Application(std::move(parts)));
}

void Application::run(const std::stop_token& stop) {
  auto& parts = *parts_;
  const std::stop_callback forward(stop, [&parts] {
    parts.live.close();
    parts.stopping.request_stop();
  });
  const auto token = parts.stopping.get_token();
  const auto& settings = parts.settings;
  const auto* map = settings.config_map ? &*settings.config_map : nullptr;
  // Beside everything else: only people need to know, and the first list must not wait for it.
  parts.access = std::make_unique<AccessDesk>(
      *parts.client, settings.frame.mode_cap,
      needed_verbs(settings.frame.mode_cap, settings.frame.events, map, settings.frame.own_namespace,
                   settings.election.has_value(), settings.frame.status),
      parts.log);
  // The machine may refuse one of the threads below: nobody may wait for an answer then.
  const std::unique_ptr<std::stop_source, void (*)(std::stop_source*)> at_end(
      &parts.stopping, [](std::stop_source* source) { source->request_stop(); });
  const auto admit = [&parts](k8s::Request& request) { return parts.fence.admit(request); };
  const k8s::Client writer = settings.election ? parts.client->admitted_by(admit) : *parts.client;
  Executor executor(writer, settings.reporting_instance,
                    [&parts](Executor::Done done) { parts.reported(std::move(done)); });
  const auto webhook = parts.make_webhook();
  parts.start_election();
  parts.start_watches();
  parts.start_configuration();
  RunLoop loop(
      parts.inbox, executor,
      {.status_store = parts.status_store,
       .metrics = parts.metrics,
       .log = parts.log,
       .live = parts.live,
       .blind =
           [&parts](bool is_blind) {
             if (parts.elector) parts.elector->blind(is_blind);
           },
       .doubt = [&parts](const ViewDoubt& doubt) { parts.list_afresh(doubt); },
       .tell = [&webhook](const WebhookRules* rules, std::vector<News> news) { webhook->tell(rules, std::move(news)); },
       .refresh = [&parts] { parts.refresh(); }});
  if (parts.record_files) {
    loop.record_to(std::make_shared<record::Recorder>(
        [files = parts.record_files.get()](record::Line line) { files->put(std::move(line)); }));
  }
  loop.run(token);
  webhook->request_stop();
  const bool idle = executor.drain(kDrainPatience);
  executor.request_stop();  // before the watchers are joined: both may wait for the same credentials
  parts.request_stop();     // and before the release, which may, too
  if (parts.elector && idle) {
    parts.elector->release(kReleasePatience);
  } else if (parts.elector) {
    // The server may still be at work on a request of ours: as after a kill, others wait for our time to be over.
    parts.log.warn("lease not released: a request is still under way");
  }
  loop.finish();
  parts.stop();
  parts.elector.reset();
  const std::lock_guard lock(parts.file_mutex);
  parts.file.reset();
  parts.access.reset();
}

void Application::reload() { parts_->reload(); }

}  // namespace dhc
