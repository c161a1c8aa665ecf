#include "app/webhook/webhook.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/webhook/cloud_event.h"
#include "app/webhook/webhook_secret.h"
#include "k8s-client/auth/file.h"
#include "k8s-client/protocol/retry_after.h"
#include "k8s-client/transport_factory.h"

namespace dhc {

namespace {

constexpr k8s::TransportLimits kLimits{.header_bytes = 16UL * 1024, .body_bytes = 64UL * 1024};
constexpr k8s::Timeouts kTimeouts{.connect = Seconds(5), .idle = Seconds(10), .total = Seconds(10)};
/// A receiver that fails now and then is none that is not told.
constexpr int kFailuresToTell = 3;
/// How often files that could not be read are looked at again while nothing is to be sent.
constexpr Millis kLookAgain = Seconds(10);
constexpr std::size_t kLongestProblem = 512;

Status read_ca(const std::string& path) {
  if (path.empty()) return {};
  if (const auto pem = k8s::read_file(path); !pem)
    return fail(ErrorKind::Invalid,
                fmt::format("spec.webhook.caFile: {}: mount the PEM of whom to trust there", pem.error().message));
  return {};
}

k8s::TlsSource tls_source(std::string path) {
  return [path = std::move(path)](const std::stop_token& /*stop*/) -> Result<k8s::TlsMaterial> {
    k8s::TlsMaterial material;
    if (path.empty()) return material;
    auto pem = k8s::read_file(path);
    if (!pem) return std::unexpected(std::move(pem.error()));
    material.ca_pem = *std::move(pem);
    // An empty one would mean the system's roots.
    if (material.ca_pem.empty()) return fail(ErrorKind::Invalid, path + " is empty");
    return material;
  };
}

Millis retry_after(const k8s::Response& answer) {
  const auto value = k8s::header(answer, "retry-after");
  return value ? k8s::parse_retry_after(*value, k8s::header(answer, "date")).value_or(Millis(0)) : Millis(0);
}

}  // namespace

struct Webhook::State {
  const std::string own_namespace;
  const WebhookCalls calls;
  Log& log;
  std::mutex mutex;  // what both threads use
  std::condition_variable_any bell;
  std::shared_ptr<const WebhookRules> rules;
  WebhookQueue queue;
  bool has_news = false;  // since the thread has looked
  // of the thread alone
  std::shared_ptr<const WebhookRules> now_rules;
  std::unique_ptr<k8s::Transport> transport;
  std::string problem;
  std::optional<MonoTime> look_again_at;  // at files
  int failures = 0;
  std::jthread thread;

  State(std::string ns, WebhookCalls c, Log& l) : own_namespace(std::move(ns)), calls(std::move(c)), log(l) {
    thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (const auto body = next(stop)) deliver(*body, stop);
    }
  }

  /// What is to be sent now; nothing: look again.
  std::optional<std::string> next(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    if (rules != now_rules) {
      now_rules = rules;
      lock.unlock();
      begin();
      return std::nullopt;
    }
    const auto now = mono_now();
    if (look_again_at && *look_again_at <= now) {
      lock.unlock();
      look_at_files();
      return std::nullopt;
    }
    if (const auto* due = queue.due(now)) {
      queue.sent(now);
      return *due;
    }
    auto until = queue.due_at();
    if (look_again_at && (!until || *look_again_at < *until)) until = look_again_at;
    const auto is_news = [this] { return has_news; };
    if (until) {
      (void)bell.wait_for(lock, stop, *until - now, is_news);
    } else {
      (void)bell.wait(lock, stop, is_news);
    }
    has_news = false;
    return std::nullopt;
  }

  /// Another receiver, or none.
  void begin() {
    transport.reset();
    failures = 0;
    look_again_at.reset();
    say("");
    if (!now_rules) return;
    const auto& url = now_rules->url;
    transport = k8s::make_transport({.tls = url.tls, .host = url.host, .port = url.port, .path_prefix = {}},
                                    tls_source(now_rules->ca_file), kLimits);
    log.info("webhook", {{"host", url.host}, {"port", url.port}, {"tls", url.tls ? "true" : "false"}});
    look_at_files();
  }

  /// Before there is anything to send: who makes a mistake there hears of it at once.
  void look_at_files() {
    look_again_at.reset();
    const auto secret = read_webhook_secret(now_rules->secret_file);
    const auto ca = read_ca(now_rules->ca_file);
    if (secret && ca) return say("");
    look_again_at = mono_now() + kLookAgain;
    say(secret ? ca.error().message : secret.error().message);
  }

  void deliver(const std::string& body, const std::stop_token& stop) {
    const auto answer = send(body, stop);
    if (stop.stop_requested()) return;
    std::optional<WebhookEnd> end;
    {
      const std::lock_guard lock(mutex);
      end = queue.answered(answer, mono_now());
    }
    if (end) calls.ended(*end);
  }

  WebhookAnswer send(const std::string& body, const std::stop_token& stop) {
    const auto secret = read_webhook_secret(now_rules->secret_file);
    const auto ca = read_ca(now_rules->ca_file);
    if (!secret || !ca) {
      look_at_files();
      return {};
    }
    const auto at = std::chrono::duration_cast<Seconds>(read_now().wall.time_since_epoch()).count();
    const auto timestamp = fmt::format("{}", at);
    k8s::Request request{.method = k8s::Method::Post,
                         .target = now_rules->url.target,
                         .headers = {{"Content-Type", "application/cloudevents+json; charset=utf-8"},
                                     {"X-Device-Health-Timestamp", timestamp},
                                     {"X-Device-Health-Signature", webhook_signature(*secret, timestamp, body)}},
                         .body = body,
                         .timeouts = kTimeouts,
                         .status_only = true};
    // What it says is for whoever leads.
    if (!calls.admit(request)) return {};
    const auto answer = transport->send(request, stop);
    if (stop.stop_requested()) return {};
    if (!answer) {
      failed(answer.error().message);
      return {};
    }
    const auto means = meaning_of_status(answer->status);
    if (means == WebhookAnswer::Means::Delivered) {
      failures = 0;
      say("");
    } else if (means == WebhookAnswer::Means::Refused) {
      failures = kFailuresToTell;
      failed(fmt::format("it answered {}, and is not asked again: check url and secretFile, and what it logs",
                         answer->status));
    } else {
      failed(fmt::format("it answered {}", answer->status));
    }
    return {.means = means, .wait = retry_after(*answer)};
  }

  void failed(const std::string& why) {
    if (++failures >= kFailuresToTell)
      say(fmt::format("spec.webhook: {} port {}: {}", now_rules->url.host, now_rules->url.port, why));
  }

  /// Each word once.
  void say(std::string words) {
    if (words.size() > kLongestProblem) words.resize(kLongestProblem);
    if (words == problem) return;
    problem = std::move(words);
    calls.problem(problem);
  }
};

Webhook::Webhook(std::string own_namespace, WebhookCalls calls, Log& log)
    : state_(std::make_unique<State>(std::move(own_namespace), std::move(calls), log)) {}

Webhook::~Webhook() {
  request_stop();
  if (state_->thread.joinable()) state_->thread.join();
}

void Webhook::request_stop() { state_->thread.request_stop(); }

void Webhook::tell(const WebhookRules* rules, std::vector<News> news) {
  int dropped = 0;
  {
    const std::lock_guard lock(state_->mutex);
    auto& known = state_->rules;
    const bool is_other = rules == nullptr ? known != nullptr : known == nullptr || *known != *rules;
    if (!is_other && news.empty()) return;
    if (is_other) {
      if (known && rules != nullptr && known->url != rules->url) state_->queue.redirect();
      known = rules == nullptr ? nullptr : std::make_shared<const WebhookRules>(*rules);
      if (known) state_->queue.set_rate(known->per_minute);
      state_->queue.begin_anew();
    }
    if (!known) state_->queue.clear();
    const auto now = mono_now();
    for (const auto& one : news) {
      if (!known || state_->queue.push(cloud_event(one, webhook_source(known->source, state_->own_namespace)), now))
        continue;
      ++dropped;
    }
    state_->has_news = true;
  }
  state_->bell.notify_one();
  for (int i = 0; i < dropped; ++i) state_->calls.ended(WebhookEnd::Dropped);
}

}  // namespace dhc
