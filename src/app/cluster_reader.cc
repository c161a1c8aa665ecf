#include "app/cluster_reader.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/earlier_state.h"
#include "app/health_report.h"
#include "app/mailbox.h"
#include "app/policy_map.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/watcher.h"

namespace dhc {

namespace {

constexpr std::size_t kMostWaiting = 256;
constexpr std::size_t kMostAtOnce = 64;
/// How often the watches are asked what is wrong.
constexpr Millis kLook{200};
/// A server that nobody reaches is said before a person gives up; the watches themselves try for ever.
constexpr Millis kReachPatience = Seconds(10);

/// A delivery and the target that it is of.
struct Delivered {
  std::size_t target = 0;
  k8s::Delivery delivery;
};

class Reader {
 public:
  Reader(const std::shared_ptr<const k8s::Client>& client, const ClusterLook& look, const std::stop_token& stop)
      : look_(look), outer_(stop, [this] { stopping_.request_stop(); }) {
    for (const auto kind : k8s::kAllKinds) {
      if (kind != k8s::Kind::ConfigMap) start({.kind = kind, .ns = {}, .name = {}}, client);
    }
    start({.kind = k8s::Kind::ConfigMap, .ns = look.own_namespace, .name = std::string(kIncidentsName)}, client);
    earlier_target_ = watchers_.size();
    start({.kind = k8s::Kind::ConfigMap, .ns = look.own_namespace, .name = std::string(kStateName)}, client);
    if (const auto& map = look.config_map) {
      policy_target_ = watchers_.size();
      start({.kind = k8s::Kind::ConfigMap, .ns = map->ns, .name = map->name}, client);
    }
  }

  ~Reader() {
    stopping_.request_stop();
    for (const auto& watcher : watchers_) watcher->request_stop();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] Result<ClusterSight> read() {
    const auto begun = mono_now();
    const auto token = stopping_.get_token();
    while (complete_.size() < watchers_.size()) {
      for (auto& one : inbox_.pop_batch(kMostAtOnce, mono_now() + kLook, token)) take(std::move(one));
      if (token.stop_requested()) return fail(ErrorKind::Cancelled, "stopped");
      if (auto trouble = trouble_after(mono_now() - begun)) return std::unexpected(*std::move(trouble));
    }
    return std::move(sight_);
  }

 private:
  void start(k8s::WatchTarget target, const std::shared_ptr<const k8s::Client>& client) {
    target.kept = kKeptFields;
    target.wire = k8s::WireFormat::Protobuf;
    const auto number = watchers_.size();
    watchers_.push_back(std::make_unique<k8s::Watcher>(
        std::move(target), client,
        k8s::WatcherCalls{.clock = read_now,
                          .deliver =
                              [this, number](k8s::Delivery delivery) {
                                (void)inbox_.push({.target = number, .delivery = std::move(delivery)},
                                                  stopping_.get_token());
                              },
                          .show = {}}));
  }

  void take(Delivered one) {
    if (std::holds_alternative<k8s::Snapshot>(one.delivery)) complete_.insert(one.target);
    if (one.target == policy_target_) {
      if (auto read = read_policy_map(one.delivery, *look_.config_map)) sight_.policy = std::move(*read);
    } else if (one.target == earlier_target_) {
      if (auto earlier = read_earlier_state(one.delivery)) sight_.earlier = *std::move(earlier);
    } else if (!std::holds_alternative<k8s::Told>(one.delivery)) {
      sight_.deliveries.push_back(std::move(one.delivery));
    }
  }

  /// What waiting does not mend, or has not mended in time.
  [[nodiscard]] std::optional<Error> trouble_after(Millis waited) const {
    const auto patience = complete_.empty() ? std::min(look_.patience, kReachPatience) : look_.patience;
    for (std::size_t number = 0; number < watchers_.size(); ++number) {
      if (complete_.contains(number)) continue;
      const auto status = watchers_[number]->status();
      const bool is_refused = status.last_error && (status.last_error->kind == ErrorKind::Unauthorized ||
                                                    status.last_error->kind == ErrorKind::Forbidden);
      const bool is_late = waited >= look_.patience || (waited >= patience && status.last_error);
      if (!is_refused && !is_late) continue;
      const auto problem = watch_fact(status).problem;
      return Error{.kind = is_refused ? status.last_error->kind : ErrorKind::TimedOut,
                   .message = fmt::format("{} could not be listed: {}", k8s::to_string(status.kind),
                                          problem.empty() ? "no complete list came in time" : problem),
                   .retry_after = {}};
    }
    return std::nullopt;
  }

  const ClusterLook& look_;
  std::stop_source stopping_;
  std::stop_callback<std::function<void()>> outer_;
  Mailbox<Delivered> inbox_{kMostWaiting};
  std::optional<std::size_t> policy_target_;
  std::size_t earlier_target_ = 0;
  std::set<std::size_t> complete_;
  ClusterSight sight_;
  std::vector<std::unique_ptr<k8s::Watcher>> watchers_;  // last: their threads use all the others
};

}  // namespace

Result<ClusterSight> read_cluster(const std::shared_ptr<const k8s::Client>& client, const ClusterLook& look,
                                  const std::stop_token& stop) {
  return Reader(client, look, stop).read();
}

}  // namespace dhc
