#include "cli/plugin/status_reader.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/mailbox.h"
#include "cli/plugin/writes.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/lease_requests.h"
#include "k8s-client/watcher.h"

namespace dhc::cli {

namespace {

constexpr Millis kTick = Seconds(1);
/// How old the word on the leader may be.
constexpr Millis kLeaseAge = Seconds(5);

Error explained(Error error, const std::string& ns) {
  if (error.kind == ErrorKind::NotFound) {
    error.message = fmt::format(
        "there is no ConfigMap {0}/{1}: no controller has written one there. Does it run in another namespace "
        "(--controller-namespace), with --status=false, or is it older than its status?",
        ns, kStatusName);
  } else if (error.kind == ErrorKind::Forbidden) {
    error.message += fmt::format(
        "; to read the status bind the ClusterRole: kubectl -n {} create rolebinding NAME "
        "--clusterrole=device-health-reader --user=USER",
        ns);
  }
  return error;
}

/// Who leads is told beside the status, and is no reason not to show it.
void read_leader(const k8s::Client& client, Sight& sight, const std::stop_token& stop) {
  const auto answer = client.call(
      k8s::build_lease_get({.ns = sight.ns, .name = std::string(kLeaseName), .manager = std::string(kFieldManager)}),
      stop);
  if (!answer) {
    if (answer.error().kind == ErrorKind::NotFound) note_lease(sight, nullptr);
    return;
  }
  if (const auto lease = k8s::parse_lease(*answer)) note_lease(sight, &*lease);
}

class Follower {
 public:
  Follower(const std::shared_ptr<const k8s::Client>& client, Sight first, const std::stop_token& stop)
      : client_(*client),
        sight_(std::move(first)),
        ahead_(sight_.now - wall_now()),
        stop_(stop),
        watcher_(
            {.kind = k8s::Kind::ConfigMap, .ns = sight_.ns, .name = std::string(kStatusName), .kept = kKeptFields},
            client,
            {.clock = read_now,
             .deliver = [this](k8s::Delivery delivery) { (void)inbox_.push(std::move(delivery), ending_.get_token()); },
             .show = {}}) {}
  ~Follower() { ending_.request_stop(); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  void run(const std::function<bool(const Sight&)>& show) {
    auto lease_at = mono_now() + kLeaseAge;
    while (!stop_.stop_requested() && show(sight_)) {
      for (const auto& delivery : inbox_.pop_batch(64, mono_now() + kTick, stop_)) take(delivery);
      if (mono_now() >= lease_at) {
        read_leader(client_, sight_, stop_);
        lease_at = mono_now() + kLeaseAge;
      }
      sight_.now = wall_now() + ahead_;
    }
  }

 private:
  void take(const k8s::Delivery& delivery) {
    if (const auto* snapshot = std::get_if<k8s::Snapshot>(&delivery)) {
      for (const auto& object : snapshot->objects) take(object);
    } else if (const auto* upsert = std::get_if<k8s::Upsert>(&delivery)) {
      take(upsert->object);
    }
  }

  /// What cannot be read changes nothing: what stood before is shown, with its time.
  void take(const k8s::Object& object) {
    const auto* map = std::get_if<k8s::ConfigMap>(&object);
    if (map == nullptr || map->meta.name != kStatusName) return;
    const auto entry = map->data.find(kStatusEntry);
    if (entry == map->data.end()) return;
    auto sight = sight_of(sight_.ns, entry->second, k8s::find(map->meta.annotations, kWrittenByAnnotation).value_or(""),
                          k8s::find(map->meta.annotations, kWrittenAtAnnotation).value_or(""), sight_.now);
    if (!sight) return;
    sight->leader = sight_.leader;
    sight->lease_ends = sight_.lease_ends;
    sight_ = *std::move(sight);
    read_leader(client_, sight_, stop_);
  }

  const k8s::Client& client_;
  Sight sight_;
  const WallTime::duration ahead_;
  const std::stop_token stop_;
  std::stop_source ending_;
  Mailbox<k8s::Delivery> inbox_{64};
  k8s::Watcher watcher_;  // last: its thread uses the others
};

}  // namespace

Result<Connection> connect_to(const ClusterFlags& flags) {
  return connect({.kubeconfig = flags.kubeconfig, .context = flags.context}, flags.as, "kubectl-device-health",
                 flags.overrides);
}

Result<Sight> read_status(const k8s::Client& client, const std::string& ns, const std::stop_token& stop) {
  const auto path = config_map_path(ns, kStatusName);
  if (!path) return std::unexpected(path.error());
  const auto answer = client.call(k8s::read_request(*path), stop);
  if (!answer) return std::unexpected(explained(answer.error(), ns));
  auto sight = parse_sight(ns, answer->body, time_of(k8s::header(*answer, "date"), wall_now()));
  if (sight) read_leader(client, *sight, stop);
  return sight;
}

Status follow_status(const std::shared_ptr<const k8s::Client>& client, const std::string& ns,
                     const std::function<bool(const Sight&)>& show, const std::stop_token& stop) {
  auto first = read_status(*client, ns, stop);
  if (!first) return std::unexpected(std::move(first.error()));
  Follower(client, *std::move(first), stop).run(show);
  return {};
}

}  // namespace dhc::cli
