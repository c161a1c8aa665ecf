#include "cli/plugin/operate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/signals.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "cli/plugin/status_reader.h"
#include "cli/plugin/writes.h"
#include "domain/contract/names.h"
#include "k8s-client/protocol/watch_requests.h"

namespace dhc::cli {

namespace {
using Deed = OperatorOptions::Deed;

constexpr std::size_t kLongestReason = 200;
constexpr std::size_t kLongestShown = 400;
constexpr std::string_view kConfigurationName = "device-health-controller";

/// An object as it was read, and the time of that by the server's clock and ours.
struct Read {
  Target target;
  std::string body;
  WallTime vouched_until;
  WallTime now;
};

class Operator {
 public:
  Operator(const k8s::Client& client, const OperatorOptions& options, std::stop_token stop)
      : client_(client), options_(options), stop_(std::move(stop)) {}

  Printed run() {
    switch (options_.deed) {
      case Deed::AckNode:
        return ack_node();
      case Deed::AckDevice:
        return ack_device();
      case Deed::AckWorkload:
        return ack_workload();
      case Deed::ReleaseNode:
        return release(node_path(options_.name), "node " + options_.name);
      case Deed::ReleaseCluster:
        return release(configuration(), "the cluster");
      case Deed::Pause:
        return pause();
      case Deed::Resume:
        return resume();
    }
    return {};
  }

 private:
  [[nodiscard]] Result<std::string> configuration() const {
    const auto map = options_.config_map.value_or(
        ConfigMapName{.ns = options_.cluster.controller_ns, .name = std::string(kConfigurationName)});
    return config_map_path(map.ns, map.name);
  }

  [[nodiscard]] Result<Read> read(const Result<std::string>& path, std::string what) const {
    if (!path) return std::unexpected(path.error());
    auto answer = client_.call(k8s::read_request(*path), stop_);
    if (!answer) {
      auto error = std::move(answer.error());
      if (error.kind == ErrorKind::NotFound) error.message = fmt::format("{} does not exist: {}", what, error.message);
      return std::unexpected(std::move(error));
    }
    auto uid = uid_of(answer->body);
    if (!uid) return std::unexpected(std::move(uid.error()));
    const auto date = k8s::header(*answer, "date");
    const auto ours = wall_now();
    return Read{.target = {.path = *path, .uid = *std::move(uid), .what = std::move(what)},
                .body = answer->body,
                .vouched_until = vouched_until(date, ours),
                .now = time_of(date, ours)};
  }

  [[nodiscard]] Printed write(const Target& target, const Annotations& annotations, std::string said) const {
    const auto answer = client_.call(build_annotations(target, annotations, options_.dry_run), stop_);
    if (!answer) return failure(fmt::format("{}: {}", target.what, answer.error().message));
    Printed printed{.code = 0, .out = options_.dry_run ? "dry run, nothing was changed:\n" : "", .err = {}};
    for (const auto& [name, value] : annotations) {
      printed.out += value ? fmt::format("{}: {}={}\n", target.what, name, *value)
                           : fmt::format("{}: {} removed\n", target.what, name);
    }
    printed.out += said;
    return printed;
  }

  [[nodiscard]] Printed ack_node() const {
    const auto node = read(node_path(options_.name), "node " + options_.name);
    if (!node) return failure(node.error().message);
    std::string said = "It acknowledges every incident of the node's devices that opened up to then";
    const auto sight = read_status(client_, options_.cluster.controller_ns, stop_);
    const auto incidents =
        sight ? acknowledged_by_node(*sight, options_.name, node->vouched_until) : std::vector<std::string>();
    said += !sight              ? "; which, the status does not say: " + sight.error().message + "\n"
            : incidents.empty() ? "; the status shows none that is open\n"
                                : ":\n";
    for (const auto& incident : incidents) said += "  " + incident + "\n";
    return write(node->target, {{kAcknowledgeAnnotation, format_rfc3339(node->vouched_until)}}, std::move(said));
  }

  [[nodiscard]] Printed ack_device() const {
    const auto sight = read_status(client_, options_.cluster.controller_ns, stop_);
    if (!sight) return without_status(sight.error());
    const auto rule = rule_to_acknowledge(*sight, options_.name);
    if (!rule) return failure(rule.error().message);
    Result<Read> found = fail(ErrorKind::NotFound, "the API server serves no DeviceTaintRules");
    for (std::size_t version = 0; version < k8s::version_count(k8s::Kind::DeviceTaintRule); ++version) {
      found = read(rule_path(k8s::api_version_of(k8s::Kind::DeviceTaintRule, version), *rule), "rule " + *rule);
      if (found || found.error().kind != ErrorKind::NotFound) break;
    }
    if (!found) return failure(found.error().message);
    auto reason = printable_cut(options_.reason, kLongestReason);
    if (reason.empty()) reason = "by kubectl device-health ack";
    return write(found->target, {{kAcknowledgeAnnotation, std::move(reason)}},
                 "The controller removes the rule, and does not make it again in this incident\n");
  }

  [[nodiscard]] Printed ack_workload() const {
    const auto what = fmt::format("{} {}/{}", options_.kind, options_.ns, options_.name);
    const auto object = read(workload_path(options_.kind, options_.ns, options_.name), what);
    if (!object) return failure(object.error().message);
    std::string said = "What broke under it up to then is not held against it any more";
    // A tenant may write on its own workload, and not read the status.
    const auto sight = read_status(client_, options_.cluster.controller_ns, stop_);
    const auto suspicion = sight ? suspicion_of(*sight, options_.kind, options_.ns, options_.name) : std::string();
    said += !sight              ? "; whether it is suspected, the status does not say: " + sight.error().message + "\n"
            : suspicion.empty() ? "; the status names no suspicion of it\n"
                                : ":\n  " + suspicion + "\n";
    return write(object->target, {{kAcknowledgeAnnotation, format_rfc3339(object->vouched_until)}}, std::move(said));
  }

  [[nodiscard]] Printed release(const Result<std::string>& path, const std::string& scope) const {
    const auto object = read(path, scope == "the cluster" ? "the configuration's ConfigMap" : scope);
    if (!object) return failure(object.error().message);
    const auto until = format_rfc3339(object->vouched_until);
    return write(object->target, {{kBrakeReleaseAnnotation, until}},
                 fmt::format("Devices that went bad up to then no longer count for the brakes of {}; later ones engage "
                             "them again\n",
                             scope));
  }

  /// Who writes, by the API server's account; empty: it does not say.
  [[nodiscard]] std::string who() const {
    const auto answer = client_.call(build_who_am_i(), stop_);
    return answer ? printable_cut(read_who_am_i(answer->body), kLongestReason) : std::string();
  }

  /// Pauses that have ended go with it.
  [[nodiscard]] Printed pause_part(const Read& map) const {
    const auto value = pause_value(options_.scope, map.now + options_.pause_for,
                                   printable_cut(options_.reason, kLongestReason), who());
    if (!value) return failure(value.error().message);
    const auto name = pause_annotation(options_.scope);
    const auto standing = pauses_on(map.body);
    Annotations annotations = {{name, *value}};
    for (const auto& [other, text] : standing) {
      if (other != name && is_over(text, map.now)) annotations.emplace_back(other, std::nullopt);
    }
    return write(
        map.target, annotations,
        "Until then nothing is evicted, credited or newly tainted there; kubectl device-health resume with the "
        "same part ends it\n");
  }

  [[nodiscard]] Printed pause() const {
    const auto map = read(configuration(), "the configuration's ConfigMap");
    if (!map) return failure(map.error().message);
    if (options_.scope != PauseScope{}) return pause_part(*map);
    const auto until = format_rfc3339(map->now + options_.pause_for);
    const auto reason = printable_cut(options_.reason, kLongestReason);
    return write(map->target,
                 {{kPauseUntilAnnotation, until},
                  {kPauseReasonAnnotation, reason.empty() ? std::optional<std::string>() : std::optional(reason)}},
                 fmt::format("Until then nothing is evicted, credited or newly tainted; kubectl device-health resume "
                             "ends it\n"));
  }

  [[nodiscard]] Printed resume_part(const Read& map) const {
    const auto name = pause_annotation(options_.scope);
    const auto standing = pauses_on(map.body);
    if (std::ranges::find(standing, name, &std::pair<std::string, std::string>::first) == standing.end()) {
      return failure(fmt::format("{} has no annotation {}: that part is not paused by one{}", map.target.what, name,
                                 words_of(standing, "; these stand:\n")));
    }
    return write(map.target, {{name, std::nullopt}}, "Pauses in ControllerLimits go on until they are changed there\n");
  }

  [[nodiscard]] static std::string words_of(const std::vector<std::pair<std::string, std::string>>& standing,
                                            std::string_view before) {
    std::string words;
    for (const auto& [name, value] : standing)
      words += fmt::format("  {}={}\n", name, printable_cut(value, kLongestShown));
    return words.empty() ? words : std::string(before) + words;
  }

  [[nodiscard]] Printed resume() const {
    const auto map = read(configuration(), "the configuration's ConfigMap");
    if (!map) return failure(map.error().message);
    if (options_.scope != PauseScope{}) return resume_part(*map);
    Annotations annotations = {{kPauseUntilAnnotation, std::nullopt}, {kPauseReasonAnnotation, std::nullopt}};
    const auto standing = pauses_on(map->body);
    std::string said = "Where ControllerLimits has paused: true or pauses, that goes on until it is changed there\n";
    if (options_.all) {
      for (const auto& [name, value] : standing) annotations.emplace_back(name, std::nullopt);
    } else {
      said += words_of(standing, "These pauses of parts stand; name the part, or --all, to end them:\n");
    }
    return write(map->target, annotations, std::move(said));
  }

  const k8s::Client& client_;
  const OperatorOptions& options_;
  const std::stop_token stop_;
};
}  // namespace

Printed operate(const OperatorOptions& options) {
  const Signals signals;
  const auto connection = connect_to(options.cluster);
  if (!connection) return failure("no access to a cluster: " + connection.error().message);
  auto whole = options;
  if (whole.ns.empty()) whole.ns = connection->access.ns.empty() ? "default" : connection->access.ns;
  return Operator(*connection->client, whole, signals.token()).run();
}

}  // namespace dhc::cli
