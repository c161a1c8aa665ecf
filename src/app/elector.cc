#include "app/elector.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "app/clock.h"

namespace dhc {

namespace {
// Of a watch that says more than we can look up: the last word is enough, and the next renewal finds out the rest.
constexpr std::size_t kMostHints = 64;
}  // namespace

Elector::Elector(ElectionSettings settings, const k8s::Client& client, LeaderFence& fence, Show show, Log& log,
                 Answered answered)
    : client_(client),
      fence_(fence),
      show_(std::move(show)),
      answered_(std::move(answered)),
      log_(log),
      machine_(std::move(settings.subject), std::move(settings.identity)),
      random_(std::random_device{}()),
      thread_([this](const std::stop_token& stop) noexcept { run(stop); }) {}

void Elector::observed(k8s::Delivery delivery) {
  {
    const std::lock_guard lock(mutex_);
    if (hints_.size() >= kMostHints) hints_.erase(hints_.begin());
    hints_.push_back(std::move(delivery));
  }
  bell_.notify_one();
}

void Elector::blind(bool is_blind) {
  {
    const std::lock_guard lock(mutex_);
    if (is_blind_ == is_blind) return;
    is_blind_ = is_blind;
    blind_is_news_ = true;
  }
  bell_.notify_one();
}

void Elector::take_hints() {
  std::vector<k8s::Delivery> hints;
  {
    const std::lock_guard lock(mutex_);
    hints.swap(hints_);
    machine_.blind(is_blind_);
    blind_is_news_ = false;
  }
  for (const auto& hint : hints) machine_.observed(hint, lease_now());
}

void Elector::run(const std::stop_token& stop) {
  std::uniform_real_distribution<double> chance(0.0, 1.0);
  while (!stop.stop_requested()) {
    take_hints();
    const auto step = machine_.next(lease_now());
    publish();
    if (const auto* call = std::get_if<k8s::LeaseCall>(&step)) {
      const auto sent = read_now();
      const auto answer = client_.call(call->request, stop);
      if (answer && answered_) answered_(*answer, sent);
      machine_.answered(answer, lease_now(), chance(random_));
      publish();
    } else if (const auto* wait = std::get_if<k8s::LeaseWait>(&step)) {
      pause(wait->until, stop);
    }
  }
}

void Elector::pause(MonoTime until, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  (void)bell_.wait_for(lock, stop, until - k8s::boot_now(), [this] { return !hints_.empty() || blind_is_news_; });
}

void Elector::publish() {
  const auto term = machine_.term(k8s::boot_now());
  fence_.set(term);
  const auto& problem = machine_.problem();
  ElectionFact fact{.leads = term.has_value(),
                    .holder = machine_.holder(),
                    .leaderless = machine_.is_leaderless(k8s::boot_now()),
                    .forbidden = problem && problem->kind == ErrorKind::Forbidden,
                    .problem = problem ? problem->message : std::string(),
                    .gave_back = machine_.yields(k8s::boot_now()),
                    .since = shown_.since};
  if (!has_shown_ || fact.leads != shown_.leads) fact.since = read_now().wall;
  if (has_shown_ && fact == shown_) return;
  tell(fact);
  shown_ = std::move(fact);
  has_shown_ = true;
  show_(shown_);
}

void Elector::tell(const ElectionFact& fact) {
  if (fact.gave_back && !shown_.gave_back) {
    log_.warn("gives the lease back: a watch has been silent for too long, while other requests are answered",
              {{"identity", machine_.identity()}});
  }
  if (fact.leads != shown_.leads) {
    log_.info(fact.leads ? "leading" : "no longer leading",
              {{"identity", machine_.identity()}, {"holder", fact.holder}, {"problem", fact.problem}});
  } else if (!fact.leads && (fact.holder != shown_.holder || !has_shown_)) {
    log_.info("standing by", {{"identity", machine_.identity()}, {"holder", fact.holder}});
  }
  if (fact.leaderless && !shown_.leaderless) log_.warn("nobody has led for a minute", {{"holder", fact.holder}});
  if (fact.problem != shown_.problem && !fact.problem.empty()) {
    log_.warn("leader election", {{"error", fact.problem}});
  }
}

void Elector::release(Millis patience) {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  fence_.set(std::nullopt);
  const bool was_ours = machine_.holder() == machine_.identity();
  machine_.release();
  const auto deadline = k8s::boot_now() + patience;
  while (k8s::boot_now() < deadline) {
    const auto step = machine_.next(lease_now());
    if (const auto* call = std::get_if<k8s::LeaseCall>(&step)) {
      auto request = call->request;
      const Millis left = std::max(deadline - k8s::boot_now(), Millis(1));
      request.timeouts = {.connect = left, .idle = left, .total = left};
      machine_.answered(client_.call(request, {}), lease_now(), 0.5);
    } else if (const auto* wait = std::get_if<k8s::LeaseWait>(&step)) {
      std::this_thread::sleep_for(std::min(wait->until, deadline) - k8s::boot_now());
    } else {
      if (was_ours) log_.info("lease released", {{"identity", machine_.identity()}});
      return;
    }
  }
  log_.warn("lease not released: others wait until it has run out",
            {{"error", machine_.problem() ? machine_.problem()->message : std::string("no answer in time")}});
}

}  // namespace dhc
