#include "cli/plan.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/clock.h"
#include "app/cluster_reader.h"
#include "app/foresight.h"
#include "app/policy_desk.h"
#include "app/signals.h"
#include "cli/config_files.h"
#include "cli/connection.h"
#include "cli/plan_text.h"
#include "domain/findings/pauses.h"
#include "domain/policy/config_text.h"
#include "domain/policy/pause.h"
#include "reconcilers/owners/execute.h"

namespace dhc::cli {

namespace {
constexpr const char* kConfigName = "device-health-controller";

Printed failed(const std::string& why) { return {.code = 1, .out = {}, .err = fmt::format("error: {}\n", why)}; }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + (name == "-" ? "<stdin>" : name);
  return text;
}

/// The policy of the files, or all of their mistakes.
std::expected<Policy, Printed> read_wanted(const std::vector<std::string>& files) {
  auto config = read_config_files(files);
  if (!config) return std::unexpected(failed(config.error().message));
  if (*config) return *policy_of(*std::move(config));
  Printed printed{.code = 1, .out = {}, .err = {}};
  for (const auto& mistake : config->error()) printed.err += format_mistake(mistake) + "\n";
  return std::unexpected(std::move(printed));
}

std::string text_of(const PlanReport& report, PlanFormat format) {
  if (format == PlanFormat::Json) return plan_json(report);
  if (format == PlanFormat::Yaml) return plan_yaml(report);
  return plan_text(report, format == PlanFormat::Wide);
}

/// A verdict that a pause holds says so as well; who reads only the head must not take a quiet table for a promise.
void add_pauses(std::vector<std::string>& remarks, std::string_view whose, const Policy& policy, WallTime now) {
  if (const auto whole = pause_of(policy, now)) remarks.push_back(fmt::format("{}: {}", whose, whole->why));
  for (const auto& pause : standing_pauses(policy, now)) remarks.push_back(fmt::format("{}: {}", whose, pause.why));
}

PlanSide side_of(std::string source, Policy policy, Foresight foresight) {
  PlanSide side{.source = std::move(source), .policies = {}, .foresight = std::move(foresight)};
  for (const auto& one : policy.policies) side.policies.emplace_back(one.name, std::string(to_string(one.mode)));
  return side;
}
}  // namespace

Printed plan(const PlanOptions& options) {
  const Signals signals;
  const auto token = signals.token();
  std::optional<Policy> wanted;
  if (!options.files.empty()) {
    auto read = read_wanted(options.files);
    if (!read) return std::move(read.error());
    wanted = *std::move(read);
  }
  const auto connection = connect({.kubeconfig = options.kubeconfig, .context = options.context}, options.as,
                                  "device-health-controller", options.overrides);
  if (!connection) return failed("no access to a cluster: " + connection.error().message);
  const auto map = options.config_map.value_or(ConfigMapName{.ns = options.ns, .name = kConfigName});
  const auto sight = read_cluster(connection->client, {.own_namespace = options.ns, .config_map = map}, token);
  if (!sight) return failed(sight.error().message);

  const auto now = read_now();
  const auto look = [&](Policy policy) {
    return foresee(sight->deliveries, sight->earlier, std::move(policy), now, options.horizon,
                   [&](const owners::ReadOwner& read) {
                     auto found = owners::execute(read, *connection->client, token);
                     return Outcome{.action = read, .status = std::move(found.status), .sight = std::move(found.sight)};
                   });
  };
  PlanReport report{
      .cluster = connection->cluster, .horizon = options.horizon, .today = {}, .wanted = {}, .remarks = {}};
  if (sight->policy && sight->policy->policy) {
    auto today = *sight->policy->policy;
    set_annotations(today, *sight->policy);
    add_pauses(report.remarks, "today's configuration", today, now.wall);
    report.today = side_of(fmt::format("ConfigMap {}/{}", map.ns, map.name), today, look(today));
  } else {
    const auto why = sight->policy ? sight->policy->policy.error().message : std::string("it was not read");
    if (!wanted) return failed("today's configuration: " + why);
    report.remarks.push_back("today's configuration: " + why);
  }
  if (wanted && sight->policy) {
    // Its files would go into the same ConfigMap.
    set_annotations(*wanted, *sight->policy);
  }
  if (sight->policy && !sight->policy->pauses) {
    report.remarks.push_back(
        fmt::format("ConfigMap {}/{}: {}", map.ns, map.name, sight->policy->pauses.error().message));
  }
  if (wanted) add_pauses(report.remarks, "the new configuration", *wanted, now.wall);
  if (wanted) report.wanted = side_of(joined(options.files), *wanted, look(*wanted));
  if (token.stop_requested()) return failed("stopped");
  return {.code = 0, .out = text_of(report, options.format), .err = {}};
}

}  // namespace dhc::cli
