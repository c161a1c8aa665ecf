#include "cli/uninstall.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/signals.h"
#include "cli/connection.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/lease_requests.h"
#include "k8s-client/protocol/watch_requests.h"
#include "reconcilers/uninstall/build.h"
#include "reconcilers/uninstall/plan.h"

namespace dhc::cli {

namespace {
using uninstall::Found;
using uninstall::Trace;
using uninstall::TraceKind;

/// Looks, removes, and looks again: what was changed meanwhile is planned again, and what comes back is noticed.
constexpr int kMostSurveys = 5;
/// Often enough to see a Lease that is made and taken.
constexpr Millis kBetweenLooks = Seconds(1);

/// All that one look through the cluster found.
struct Survey {
  std::vector<Trace> traces;
  std::vector<std::string> left;
  std::vector<std::string> problems;  ///< What could not be read, and why.
};

class Sweep {
 public:
  Sweep(const k8s::Client& client, std::string ns, std::stop_token stop)
      : client_(client), ns_(std::move(ns)), stop_(std::move(stop)) {}

  /// Looks until it is certain that no controller runs; why it is not. Cancelled: we were stopped.
  [[nodiscard]] Status await_silence();
  /// One look at the Lease. Conflict: a controller runs.
  [[nodiscard]] Status look_at_lease();
  [[nodiscard]] std::string holder() const { return looks_.holder(); }
  [[nodiscard]] Survey look() const;
  /// Removes what it can; false if another round would not get further.
  bool remove(const std::vector<Trace>& traces);
  /// Why a trace that was found could not be removed.
  [[nodiscard]] std::string why(const Trace& trace) const;
  [[nodiscard]] const std::map<std::string, TraceKind>& removed() const { return removed_; }
  [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }

 private:
  [[nodiscard]] Result<Found> pages(k8s::Kind kind, std::size_t version) const;
  [[nodiscard]] Result<Found> kind(k8s::Kind kind) const;
  [[nodiscard]] Result<Found> named(TraceKind kind) const;
  void look_for_objects(Survey& survey) const;

  const k8s::Client& client_;
  std::string ns_;
  std::stop_token stop_;
  uninstall::LeaseLooks looks_;
  std::map<std::string, TraceKind> removed_;
  std::map<std::string, std::string> errors_;
};

void append(Found& to, Found from) {
  std::ranges::move(from.traces, std::back_inserter(to.traces));
  std::ranges::move(from.left, std::back_inserter(to.left));
  to.continue_token = std::move(from.continue_token);
}

Result<Found> Sweep::pages(k8s::Kind kind, std::size_t version) const {
  Found all;
  bool again = true;  // A list that expires between two pages is begun once more.
  do {
    auto answer =
        client_.call(k8s::build_list({.kind = kind, .ns = {}, .name = {}}, version, all.continue_token), stop_);
    if (!answer && answer.error().kind == ErrorKind::Gone && std::exchange(again, false)) {
      all = {};
      continue;
    }
    if (!answer) return std::unexpected(std::move(answer.error()));
    auto page = uninstall::find_traces(kind, k8s::api_version_of(kind, version), answer->body);
    if (!page) return std::unexpected(std::move(page.error()));
    append(all, *std::move(page));
  } while (!all.continue_token.empty());
  return all;
}

/// The newest version that is served: each shows the same objects.
Result<Found> Sweep::kind(k8s::Kind kind) const {
  for (std::size_t version = 0; version < k8s::version_count(kind); ++version) {
    auto found = pages(kind, version);
    if (found || found.error().kind != ErrorKind::NotFound || !k8s::may_be_absent(kind)) return found;
  }
  return Found{};
}

Result<Found> Sweep::named(TraceKind kind) const {
  const auto request = build_get(kind, ns_);
  if (!request) return std::unexpected(request.error());
  const auto answer = client_.call(*request, stop_);
  if (answer) return find_named(kind, answer->body);
  if (answer.error().kind == ErrorKind::NotFound) return Found{};
  return std::unexpected(answer.error());
}

/// What the state remembers of objects of others' kinds. Where one cannot be looked for the state is kept: without it
/// nobody would know of the object.
void Sweep::look_for_objects(Survey& survey) const {
  const auto state = std::ranges::find(survey.traces, TraceKind::StateMap, &Trace::kind);
  if (state == survey.traces.end()) return;
  const auto request = build_get(TraceKind::StateMap, ns_);
  const auto map = request ? client_.call(*request, stop_) : Result<k8s::Response>(std::unexpected(request.error()));
  bool is_known = map.has_value();
  if (!map) survey.problems.push_back(fmt::format("objects of hand-over: {}", map.error().message));
  std::vector<Trace> found;
  for (const auto& object : is_known ? uninstall::remembered_objects(map->body) : std::vector<ObjectName>()) {
    const auto kinds = build_kinds(object);
    const auto path =
        kinds ? object_path(object, client_.call(*kinds, stop_)) : Result<std::string>(std::unexpected(kinds.error()));
    if (!path && path.error().kind == ErrorKind::Invalid) continue;  // without its kind there is no object
    const auto seen = path ? sighting_of(object, client_.call(build_object_read(*path), stop_))
                           : Result<ObjectSighting>(std::unexpected(path.error()));
    if (!seen) {
      is_known = false;
      survey.problems.push_back(fmt::format("{}: {}", title_of(object), seen.error().message));
    } else if (seen->standing == ObjectStanding::Ours) {
      found.push_back(uninstall::trace_of_object(object, *path, seen->uid));
    }
  }
  if (is_known) {
    // Before the state, which is lost with it.
    survey.traces.insert(state, found.begin(), found.end());
  } else {
    survey.traces.erase(state);
    survey.traces.insert(survey.traces.begin(), found.begin(), found.end());
    survey.left.push_back(
        fmt::format("ConfigMap {}/{}: it remembers objects that cannot be looked for", ns_, kIncidentsName));
  }
}

Status Sweep::look_at_lease() {
  const auto request = uninstall::build_get(TraceKind::Lease, ns_);
  if (!request) return std::unexpected(request.error());
  const auto answer = client_.call(*request, stop_);
  if (answer) {
    auto lease = k8s::parse_lease(*answer);
    if (!lease) return std::unexpected(std::move(lease.error()));
    looks_.add(*std::move(lease), mono_now());
  } else if (answer.error().kind == ErrorKind::NotFound) {
    looks_.add(std::nullopt, mono_now());
  } else {
    return std::unexpected(answer.error());
  }
  if (looks_.running()) return fail(ErrorKind::Conflict, *looks_.running());
  return {};
}

Status Sweep::await_silence() {
  bool said = false;
  std::mutex mutex;
  std::condition_variable_any never;
  while (true) {
    if (auto looked = look_at_lease(); !looked) return looked;
    const Millis left = looks_.certain_at() - mono_now();
    if (left <= Millis::zero()) return {};
    if (!std::exchange(said, true)) {
      fmt::print("looking for {} s whether a controller {} the Lease\n", (left.count() + 999) / 1000,
                 looks_.holder().empty() ? "takes" : "renews");
      (void)std::fflush(stdout);
    }
    std::unique_lock lock(mutex);
    (void)never.wait_for(lock, stop_, std::min(left, kBetweenLooks), [] { return false; });
    if (stop_.stop_requested()) return fail(ErrorKind::Cancelled, "stopped");
  }
}

Survey Sweep::look() const {
  Survey survey;
  const auto add = [&survey](std::string_view what, Result<Found> found) {
    if (!found) {
      survey.problems.push_back(fmt::format("{}: {}", what, found.error().message));
      return;
    }
    std::ranges::move(found->traces, std::back_inserter(survey.traces));
    std::ranges::move(found->left, std::back_inserter(survey.left));
  };
  for (const auto& place : uninstall::kPlaces) add(place.plural, kind(place.kind));
  add(fmt::format("ConfigMap {}", kIncidentsName), named(TraceKind::StateMap));
  look_for_objects(survey);
  add(fmt::format("ConfigMap {}", kStatusName), named(TraceKind::StatusMap));
  add(fmt::format("ConfigMap {} of 0.1.0", kStateName), named(TraceKind::EarlierStateMap));
  add("Lease", named(TraceKind::Lease));
  return survey;
}

bool Sweep::remove(const std::vector<Trace>& traces) {
  bool further = false;
  bool has_object_left = false;
  for (const Trace& trace : traces) {
    const auto name = to_string(trace);
    if (trace.kind == TraceKind::StateMap && has_object_left) {
      errors_[name] = "it remembers objects that could not be removed";
      continue;
    }
    const auto request = build_removal(trace);
    const auto answer =
        request ? client_.call(*request, stop_) : Result<k8s::Response>(std::unexpected(request.error()));
    if (answer || answer.error().kind == ErrorKind::NotFound) {
      errors_[name] = "it is there again; is a controller still running, or does a finalizer hold it?";
      if (!removed_.emplace(name, trace.kind).second) continue;
      fmt::print("removed {}\n", name);
      further = true;
      continue;
    }
    if (answer.error().kind == ErrorKind::Cancelled) {
      errors_[name] = "stopped while it was asked for";
      return false;
    }
    errors_[name] = answer.error().message;
    has_object_left = has_object_left || trace.kind == TraceKind::Object;
    further = further || answer.error().kind == ErrorKind::Conflict;
  }
  return further;
}

std::string Sweep::why(const Trace& trace) const {
  const auto found = errors_.find(to_string(trace));
  return found == errors_.end() ? "there was no time for it" : found->second;
}

/// `3: 2 pod conditions, 1 Leases`.
std::string counts_of(const std::map<TraceKind, std::size_t>& kinds) {
  std::size_t all = 0;
  std::string text;
  for (const auto& [kind, count] : kinds) {
    all += count;
    text += fmt::format("{} {} {}", text.empty() ? ":" : ",", count, uninstall::plural_of(kind));
  }
  return fmt::format("{}{}", all, text);
}

void tell(const Survey& survey) {
  for (const auto& sentence : survey.left) fmt::print("left: {}\n", sentence);
  for (const auto& problem : survey.problems) fmt::print(stderr, "error: cannot look for {}\n", problem);
}

int list(const Sweep& sweep) {
  const auto survey = sweep.look();
  std::map<TraceKind, std::size_t> kinds;
  for (const Trace& trace : survey.traces) {
    fmt::print("would remove {}\n", to_string(trace));
    ++kinds[trace.kind];
  }
  tell(survey);
  fmt::print("would remove {}; nothing was written\n", counts_of(kinds));
  return survey.problems.empty() ? 0 : 1;
}

void refuse(const Error& error) {
  if (error.kind == ErrorKind::Cancelled) {
    fmt::print(stderr, "error: stopped\n");
  } else if (error.kind == ErrorKind::Conflict) {
    fmt::print(stderr, "error: a controller is running: {}; scale its Deployment to 0, or it writes everything again\n",
               error.message);
  } else {
    fmt::print(stderr, "error: cannot tell whether a controller is running: {}\n", error.message);
  }
}

/// Removes, looks again and so on. False: that ended early, and why has been said.
bool sweep_up(Sweep& sweep, Survey& survey) {
  for (int round = 0; round < kMostSurveys && !survey.traces.empty(); ++round) {
    if (auto looked = sweep.look_at_lease(); !looked) {
      refuse(looked.error());
      return false;
    }
    const bool further = sweep.remove(survey.traces);
    if (sweep.is_stopped()) {
      // There was no other look, so what has gone is known from the answers alone.
      std::erase_if(survey.traces, [&](const Trace& trace) { return sweep.removed().contains(to_string(trace)); });
      fmt::print(stderr, "error: stopped\n");
      return false;
    }
    if (!further) return true;
    survey = sweep.look();
  }
  return true;
}

int clean(Sweep& sweep) {
  if (auto silent = sweep.await_silence(); !silent) {
    refuse(silent.error());
    return 1;
  }
  auto survey = sweep.look();
  const bool swept = sweep_up(sweep, survey);
  tell(survey);
  std::set<std::string> remaining;
  for (const Trace& trace : survey.traces) {
    fmt::print(stderr, "not removed: {}: {}\n", to_string(trace), sweep.why(trace));
    remaining.insert(to_string(trace));
  }
  std::map<TraceKind, std::size_t> kinds;
  for (const auto& [name, kind] : sweep.removed()) {
    if (!remaining.contains(name)) ++kinds[kind];
  }
  fmt::print("removed {}; not removed {}\n", counts_of(kinds), survey.traces.size());
  return swept && survey.traces.empty() && survey.problems.empty() ? 0 : 1;
}
}  // namespace

int uninstall(const UninstallOptions& options) {
  Signals signals;
  const auto connection = connect({.kubeconfig = options.kubeconfig, .context = options.context});
  if (!connection) {
    fmt::print(stderr, "error: no access to a cluster: {}\n", connection.error().message);
    return 1;
  }
  fmt::print("cluster: {}; namespace of the controller: {}\n", connection->cluster, options.ns);
  Sweep sweep(*connection->client, options.ns, signals.token());
  if (options.dry_run) {
    if (const auto looked = sweep.look_at_lease(); !looked) {
      fmt::print(stderr, "note: cannot tell whether a controller is running: {}\n", looked.error().message);
    } else if (!sweep.holder().empty()) {
      fmt::print(stderr, "note: {} holds the Lease; scale its Deployment to 0, or it writes everything again\n",
                 sweep.holder());
    }
  }
  const int code = options.dry_run ? list(sweep) : clean(sweep);
  // A full disk or a closed pipe must not look like success.
  return std::fflush(stdout) == 0 ? code : 1;
}

}  // namespace dhc::cli
