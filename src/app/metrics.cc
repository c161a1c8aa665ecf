#include "app/metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "app/describe.h"
#include "base/version.h"

namespace dhc {

namespace {
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// From a loopback's tenth of a millisecond to the 35 s that an eviction may take.
const Histogram::BucketBoundaries& reaction_buckets() {
  static const Histogram::BucketBoundaries kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                      0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
  return kBounds;
}

// From a plan at once to a device that nobody has looked at for a day.
const Histogram::BucketBoundaries& step_buckets() {
  static const Histogram::BucketBoundaries kBounds = {1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400};
  return kBounds;
}

// From two devices that break together to a quarter of a year.
const Histogram::BucketBoundaries& interval_buckets() {
  static const Histogram::BucketBoundaries kBounds = {60,     600,    3600,    21600,   86400,
                                                      259200, 604800, 1209600, 2592000, 7776000};
  return kBounds;
}

Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help,
                     const Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
}

/// A total that is kept elsewhere: a counter only grows.
void raise(Counter& counter, double total) { counter.Increment(std::max(0.0, total - counter.Value())); }

Family<Gauge>& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Family<Counter>& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

// Beyond it, actions are counted without policy, driver and resource.
constexpr std::size_t kMostActionSeries = 2000;

/// Gauges whose labels come and go with what they count.
class Census {
 public:
  explicit Census(Family<Gauge>& family) : family_(family) {}

  /// What is not among `counts` is not shown any more.
  void show(const std::map<prometheus::Labels, std::size_t>& counts) {
    const std::lock_guard lock(mutex_);
    std::erase_if(shown_, [&](const auto& entry) {
      const bool is_gone = !counts.contains(entry.first);
      if (is_gone) family_.Remove(entry.second);
      return is_gone;
    });
    for (const auto& [labels, count] : counts) {
      auto& gauge = shown_.try_emplace(labels, nullptr).first->second;
      if (gauge == nullptr) gauge = &family_.Add(labels);
      gauge->Set(static_cast<double>(count));
    }
  }

 private:
  Family<Gauge>& family_;
  std::mutex mutex_;
  std::map<prometheus::Labels, Gauge*> shown_;
};

prometheus::Labels kind_label(k8s::Kind kind) { return {{"kind", std::string(k8s::to_string(kind))}}; }
}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  Family<Gauge>& devices = gauge(registry, "device_health_devices", "Devices known, by health.");
  Gauge& other_words = gauge(registry, "device_health_devices_other_health_word",
                             "Devices reported with a word for their health that this version does not know.")
                           .Add({});
  Census verdicts{gauge(registry, "device_health_verdicts", "Verdicts held now, by reason and policy.")};
  Census incidents{gauge(registry, "device_health_open_incidents",
                         "Devices whose incident is open, by policy, driver or resource, and node.")};
  Census quarantined{gauge(registry, "device_health_quarantined_devices",
                           "Devices that stay tainted until an operator acknowledges them.")};
  Family<Gauge>& objects = gauge(registry, "device_health_objects", "Objects held in memory, by kind.");
  Gauge& brakes = gauge(registry, "device_health_brakes_engaged", "Brakes that stop evictions now.").Add({});
  Gauge& half_open =
      gauge(registry, "device_health_brakes_half_open", "Engaged brakes whose next trial is due or under way.").Add({});
  Gauge& handed_over = gauge(registry, "device_health_nodes_handed_over",
                             "Nodes of which a condition of ours says that they are to be repaired or replaced.")
                           .Add({});
  Gauge& pauses = gauge(registry, "device_health_pauses", "Pauses in force, of everything and of parts.").Add({});
  Counter& lost_replacements =
      counter(registry, "device_health_lost_replacements_total",
              "Pods that ended before they ran, because they were bound to a node with our taint.")
          .Add({});
  Gauge& in_flight = gauge(registry, "device_health_evictions_in_flight",
                           "Pods evicted by us that still exist and count as in flight.")
                         .Add({});
  Family<Gauge>& rules_api = gauge(registry, "device_health_taint_rules_api",
                                   "1 for the API version in which the server has DeviceTaintRules; none: it has not.");
  Gauge& synced =
      gauge(registry, "device_health_synced", "1 once every required kind has had its first complete list.").Add({});
  Family<Counter>& actions = counter(registry, "device_health_actions_total",
                                     "Actions carried out, by action, outcome (ok or the error's kind), policy, and "
                                     "driver or resource of the device.");
  Family<Counter>& lost = counter(registry, "device_health_device_seconds_lost_total",
                                  "Seconds that devices were of no use, summed over the devices, by cause.");
  Counter& credited = counter(registry, "device_health_retries_credited_total", "Retries given back to Jobs.").Add({});
  Family<Counter>& would_evict = counter(registry, "device_health_would_evict_total",
                                         "Pods that would have been evicted, were the policy to enforce, by policy.");
  Family<Counter>& would_evict_ends =
      counter(registry, "device_health_would_evict_outcomes_total",
              "Of the pods that would have been evicted those of which it is known what became of them.");
  std::array<Family<Counter>*, kDeeds.size()> would_do = {
      &counter(registry, "device_health_would_taint_total",
               "Devices that would have been tainted, were the policy to enforce, by policy."),
      &counter(registry, "device_health_would_credit_total",
               "Retries that would have been given back to Jobs, were the policy to enforce, by policy."),
      &counter(registry, "device_health_would_hand_over_total",
               "Devices for which their node would have been handed over, were the policy to enforce, by policy.")};
  std::array<Histogram*, kSpans.size()> spans = {
      &histogram(registry, "device_health_report_to_notice_seconds",
                 "From the report of a bad device to the condition on its pod.", step_buckets()),
      &histogram(registry, "device_health_report_to_taint_seconds", "From the report of a bad device to its taint.",
                 step_buckets()),
      &histogram(registry, "device_health_report_to_eviction_seconds",
                 "From the report of a bad device to its pod's eviction.", step_buckets()),
      &histogram(registry, "device_health_report_to_replacement_seconds",
                 "From the report of a bad device until a replacement of its evicted pod runs.", step_buckets()),
      &histogram(registry, "device_health_node_incident_interval_seconds",
                 "From one incident of a node to its next, of all nodes.", interval_buckets())};
  Histogram& reaction = prometheus::BuildHistogram()
                            .Name("device_health_reaction_seconds")
                            .Help(
                                "From the oldest message of a turn received to its eviction request handed to the "
                                "transport.")
                            .Register(registry)
                            .Add({}, reaction_buckets());
  Family<Gauge>& watch_state =
      gauge(registry, "device_health_watch_state", "1 for the state in which the kind's watch is now.");
  Family<Gauge>& view_age =
      gauge(registry, "device_health_view_age_seconds",
            "Seconds since the last message (event, bookmark, end of a list) of the kind's watch.");
  Family<Counter>& went_back = counter(registry, "device_health_data_went_back_total",
                                       "Times that the server's data was older than what was known, by kind.");
  Gauge& server_ahead = gauge(registry, "device_health_server_clock_ahead_seconds",
                              "Seconds that the API server's clock is ahead of ours.")
                            .Add({});
  Family<Counter>& restarts =
      counter(registry, "device_health_watch_restarts_total", "Watches that ended, by kind and cause.");
  Family<Counter>& bytes =
      counter(registry, "device_health_watch_bytes_total", "Bytes of lists and watches received, by kind and format.");
  Family<Counter>& bad_objects =
      counter(registry, "device_health_bad_objects_total", "Objects that could not be read, by kind.");
  Family<Counter>& reloads =
      counter(registry, "device_health_policy_reloads_total", "Configurations read, by result: accepted or rejected.");
  Gauge& reload_ok = gauge(registry, "device_health_policy_last_reload_success",
                           "1 if the last configuration was accepted, 0 if it was rejected or none was read.")
                         .Add({});
  Gauge& leader = gauge(registry, "device_health_leader",
                        "1 while this process leads, or there is no election; 0 while it stands by.")
                      .Add({});
  Family<Counter>& webhook =
      counter(registry, "device_health_webhook_events_total", "Events for the webhook, by what became of them.");
  Gauge& recording = gauge(registry, "device_health_recording",
                           "1 while a recording is being written, 0 if none is or it has ended by an error.")
                         .Add({});
  Counter& record_bytes = counter(registry, "device_health_record_bytes_total", "Bytes of recordings written.").Add({});
  std::mutex actions_mutex;
  std::set<prometheus::Labels> action_series;
  std::mutex mutex;  // watches
  std::map<k8s::Kind, k8s::WatchStatus> watches;
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {
  gauge(families_->registry, "device_health_build_info", "Always 1; the version is a label.")
      .Add({{"version", std::string(version())}})
      .Set(1);
  for (const char* result : {"accepted", "rejected"}) families_->reloads.Add({{"result", result}});
}

Metrics::~Metrics() = default;

void Metrics::show(const ControllerStats& stats, const std::vector<Verdict>& verdicts) {
  const auto set = [](Family<Gauge>& family, const char* label, std::string_view value, std::size_t number) {
    family.Add({{label, std::string(value)}}).Set(static_cast<double>(number));
  };
  set(families_->devices, "health", "Healthy", stats.devices_healthy);
  set(families_->devices, "health", "Unhealthy", stats.devices_unhealthy);
  set(families_->devices, "health", "Unknown", stats.devices_unknown);
  families_->other_words.Set(static_cast<double>(stats.other_words));
  set(families_->objects, "kind", "Pod", stats.pods);
  set(families_->objects, "kind", "ResourceClaim", stats.claims);
  families_->brakes.Set(static_cast<double>(stats.brakes_engaged));
  families_->pauses.Set(static_cast<double>(stats.pauses));
  families_->handed_over.Set(static_cast<double>(stats.nodes_handed_over));
  families_->half_open.Set(static_cast<double>(stats.brakes_half_open));
  raise(families_->lost_replacements, static_cast<double>(stats.lost_replacements));
  show(stats.losses);
  families_->in_flight.Set(static_cast<double>(stats.in_flight));
  families_->synced.Set(stats.synced ? 1 : 0);
  if (stats.synced) {
    const std::string found = stats.rules_api_version.empty() ? "none" : stats.rules_api_version;
    for (const std::string version :
         {"resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3", "none"}) {
      set(families_->rules_api, "api_version", version, version == found ? 1 : 0);
    }
  }
  std::map<prometheus::Labels, std::size_t> by_reason;
  // Each reason is there before it is first given, so that its increase can be seen.
  for (const auto& info : all_reasons()) by_reason[{{"reason", std::string(info.word)}, {"policy", ""}}] = 0;
  for (const auto& verdict : verdicts) {
    ++by_reason[{{"reason", std::string(to_string(verdict.reason))}, {"policy", verdict.policy}}];
  }
  families_->verdicts.show(by_reason);
  std::map<prometheus::Labels, std::size_t> open;
  std::map<prometheus::Labels, std::size_t> quarantined;
  for (const auto& row : stats.incidents) {
    const prometheus::Labels labels = {
        {"policy", row.policy}, {"driver", row.driver}, {"resource", row.resource}, {"node", row.node}};
    open[labels] = row.open;
    if (row.quarantined > 0) quarantined[labels] = row.quarantined;
  }
  families_->incidents.show(open);
  families_->quarantined.show(quarantined);
}

void Metrics::show(const LossFigures& losses) {
  // Each cause is there from the start, so that its first second can be seen.
  for (std::size_t i = 0; i < kLossCauses.size(); ++i) {
    raise(families_->lost.Add({{"cause", std::string(to_string(kLossCauses.at(i)))}}),
          std::chrono::duration<double>(losses.lost.at(i)).count());
  }
  raise(families_->credited, static_cast<double>(losses.retries_credited));
  for (const auto& [policy, total] : losses.would_evict) {
    raise(families_->would_evict.Add({{"policy", policy}}), static_cast<double>(total));
    for (const auto end : kPredictionEnds) {
      const auto found = losses.ends.find({policy, end});
      raise(families_->would_evict_ends.Add({{"policy", policy}, {"outcome", std::string(to_string(end))}}),
            found == losses.ends.end() ? 0 : static_cast<double>(found->second));
    }
  }
  for (const auto& [label, total] : losses.would_do) {
    const auto& [deed, policy] = label;
    raise(families_->would_do.at(static_cast<std::size_t>(deed))->Add({{"policy", policy}}),
          static_cast<double>(total));
  }
}

void Metrics::show(const Measured& measured) {
  families_->spans.at(static_cast<std::size_t>(measured.span))
      ->Observe(std::chrono::duration<double>(measured.took).count());
}

void Metrics::count(const Outcome& outcome) {
  const auto facts = facts_of(outcome.action);
  const auto result = outcome.status ? std::string("ok") : std::string(to_string(outcome.status.error().kind));
  prometheus::Labels labels = {{"action", std::string(facts.name)},
                               {"outcome", result},
                               {"policy", std::string(facts.policy)},
                               {"driver", std::string(facts.driver)},
                               {"resource", std::string(facts.resource)}};
  {
    const std::lock_guard lock(families_->actions_mutex);
    auto& known = families_->action_series;
    if (!known.contains(labels) && known.size() >= kMostActionSeries) {
      for (const char* name : {"policy", "driver", "resource"}) labels[name].clear();
    } else {
      known.insert(labels);
    }
  }
  families_->actions.Add(labels).Increment();
}

void Metrics::reaction(std::chrono::duration<double> time) { families_->reaction.Observe(time.count()); }

void Metrics::show(const k8s::WatchStatus& status, MonoTime now) {
  const std::lock_guard lock(families_->mutex);
  auto& before = families_->watches[status.kind];
  const auto grow = [](Counter& counter, std::uint64_t from, std::uint64_t to) {
    if (to > from) counter.Increment(static_cast<double>(to - from));
  };
  const auto labels = [&](const char* name, std::string_view value) {
    auto both = kind_label(status.kind);
    both.emplace(name, value);
    return both;
  };
  families_->watch_state.Add(labels("state", k8s::to_string(before.state))).Set(0);
  families_->watch_state.Add(labels("state", k8s::to_string(status.state))).Set(1);
  for (std::size_t i = 0; i < status.endings.size(); ++i) {
    if (status.endings.at(i) == 0) continue;
    auto& restarts = families_->restarts.Add(labels("cause", k8s::to_string(k8s::kWatchEndings.at(i))));
    grow(restarts, before.endings.at(i), status.endings.at(i));
  }
  const auto heard = status.state == k8s::WatchState::NotServed ? std::nullopt : status.last_event_at;
  const std::chrono::duration<double> age = heard ? now - *heard : Millis::zero();
  families_->view_age.Add(kind_label(status.kind)).Set(age.count());
  grow(families_->went_back.Add(kind_label(status.kind)), before.went_back, status.went_back);
  grow(families_->bytes.Add(labels("format", "json")), before.json_bytes, status.json_bytes);
  grow(families_->bytes.Add(labels("format", "protobuf")), before.protobuf_bytes, status.protobuf_bytes);
  grow(families_->bad_objects.Add(kind_label(status.kind)), before.bad_objects, status.bad_objects);
  before = status;
}

void Metrics::policy_reloaded(bool accepted) {
  families_->reloads.Add({{"result", accepted ? "accepted" : "rejected"}}).Increment();
  families_->reload_ok.Set(accepted ? 1 : 0);
}

void Metrics::leading(bool leads) { families_->leader.Set(leads ? 1 : 0); }

void Metrics::webhook(std::string_view outcome) {
  families_->webhook.Add({{"outcome", std::string(outcome)}}).Increment();
}

void Metrics::recording(bool runs) { families_->recording.Set(runs ? 1 : 0); }

void Metrics::recorded(std::int64_t bytes) {
  const auto more = static_cast<double>(bytes) - families_->record_bytes.Value();
  if (more > 0) families_->record_bytes.Increment(more);
}

void Metrics::server_ahead(Millis ahead) { families_->server_ahead.Set(std::chrono::duration<double>(ahead).count()); }

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(families_->registry.Collect()); }

}  // namespace dhc
