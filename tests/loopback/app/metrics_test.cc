#include "app/metrics.h"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <variant>

#include <doctest/doctest.h>

namespace {
template <std::size_t... I>
void count_all(dhc::Metrics& metrics, std::index_sequence<I...>) {
  (metrics.count({.action = dhc::Action(std::in_place_index<I>), .status = {}}), ...);
}

/// A registry in which every metric has been touched, with every action.
std::string everything() {
  dhc::Metrics metrics;
  dhc::ControllerStats stats;
  stats.synced = true;
  stats.incidents = {{.policy = "p", .driver = "d", .resource = "", .node = "n", .open = 2, .quarantined = 1}};
  stats.losses.would_evict = {{"p", 1}};
  for (const auto deed : dhc::kDeeds) stats.losses.would_do[{deed, "p"}] = 1;
  metrics.show(stats, {});
  for (const auto span : dhc::kSpans) metrics.show(dhc::Measured{.span = span, .took = dhc::Seconds(1)});
  count_all(metrics, std::make_index_sequence<std::variant_size_v<dhc::Action>>());
  metrics.reaction(std::chrono::milliseconds(3));
  dhc::k8s::WatchStatus status;
  status.endings.fill(1);
  metrics.show(status, dhc::MonoTime(dhc::Seconds(1000)));
  metrics.policy_reloaded(true);
  metrics.webhook("delivered");
  return metrics.text();
}

std::set<std::string> found(const std::string& text, const std::regex& pattern) {
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) names.insert((*at)[1]);
  return names;
}
}  // namespace

TEST_CASE("the page about metrics names every metric that is served, and no other") {
  std::ifstream file("docs/metrics.md");
  std::stringstream page;
  page << file.rdbuf();
  const auto documented = found(page.str(), std::regex("\\| `(device_health_[a-z_]+)"));
  const auto served = found(everything(), std::regex("# TYPE (device_health_[a-z_]+) "));
  CHECK_FALSE(served.empty());
  CHECK(documented == served);
}

TEST_CASE("the page says of every metric its type, its labels, its unit, and the words of its actions") {
  std::ifstream file("docs/metrics.md");
  std::stringstream page;
  page << file.rdbuf();
  const auto documented = page.str();
  const auto served = everything();
  const std::regex type("# TYPE (device_health_[a-z_]+) ([a-z]+)");
  for (std::sregex_iterator at(served.begin(), served.end(), type), end; at != end; ++at) {
    const std::string name = (*at)[1];
    std::set<std::string> labels;
    const std::regex sample("(^|\n)" + name + "\\{([^}]*)\\}");
    for (std::sregex_iterator one(served.begin(), served.end(), sample), none; one != none; ++one) {
      labels.merge(found((*one)[2], std::regex("([a-z_]+)=\"")));
    }
    std::smatch row;
    const bool has_row = std::regex_search(
        documented, row, std::regex("\\| `" + name + "(?:\\{([a-z_,]+)\\})?` \\| ([a-z]+) \\| ([^|]+) \\| "));
    CHECK_MESSAGE(has_row, name);
    CHECK_MESSAGE(found(row[1], std::regex("([a-z_]+)")) == labels, name);
    CHECK_MESSAGE(row[2] == (*at)[2], name);
    for (const std::string unit : {"seconds", "bytes"}) {
      CHECK_MESSAGE((name.find("_" + unit) != std::string::npos) == (row[3] == unit), name);
    }
  }
  for (const auto& action : found(served, std::regex("action=\"([A-Za-z]+)\""))) {
    CHECK_MESSAGE(documented.find("`" + action + "`") != std::string::npos, action);
  }
}

TEST_CASE("actions are counted by action, what became of them, policy and kind of device") {
  dhc::Metrics metrics;
  dhc::eviction::EvictPod dra;
  dra.policy = "gpus";
  dra.key = dhc::DeviceKey::dra("gpu.example.com", "node-a", "gpu-0");
  dhc::eviction::EvictPod plugin;
  plugin.policy = "nics";
  plugin.key = dhc::DeviceKey::plugin("node-a", "example.com/nic", "nic-0");
  metrics.count({.action = dra, .status = {}});
  metrics.count({.action = plugin, .status = dhc::fail(dhc::ErrorKind::Blocked, "no")});
  metrics.count({.action = plugin, .status = dhc::fail(dhc::ErrorKind::Blocked, "no")});
  const auto text = metrics.text();
  CHECK(
      text.find(R"(device_health_actions_total{action="EvictPod",driver="gpu.example.com",outcome="ok",policy="gpus",)"
                R"(resource=""} 1)") != std::string::npos);
  CHECK(text.find(R"(device_health_actions_total{action="EvictPod",driver="",outcome="Blocked",policy="nics",)"
                  R"(resource="example.com/nic"} 2)") != std::string::npos);
}

TEST_CASE("however many policies and drivers come and go, actions make no more than a bounded number of series") {
  dhc::Metrics metrics;
  dhc::eviction::EvictPod evict;
  for (int i = 0; i < 3000; ++i) {
    evict.policy = "policy-" + std::to_string(i);
    metrics.count({.action = evict, .status = {}});
  }
  const auto text = metrics.text();
  CHECK(text.find(R"(policy="policy-1999",resource=""} 1)") != std::string::npos);
  CHECK(text.find(R"(policy="policy-2000")") == std::string::npos);
  CHECK(text.find(R"(outcome="ok",policy="",resource=""} 1000)") != std::string::npos);
}

TEST_CASE("a node is named while it has bad devices, and no longer") {
  dhc::Metrics metrics;
  dhc::ControllerStats stats;
  stats.incidents = {
      {.policy = "p", .driver = "gpu.example.com", .resource = "", .node = "node-a", .open = 2, .quarantined = 1}};
  metrics.show(stats, {});
  CHECK(metrics.text().find(
            R"(device_health_open_incidents{driver="gpu.example.com",node="node-a",policy="p",resource=""} 2)") !=
        std::string::npos);
  CHECK(metrics.text().find(
            R"(device_health_quarantined_devices{driver="gpu.example.com",node="node-a",policy="p",resource=""} 1)") !=
        std::string::npos);
  stats.incidents.front().quarantined = 0;
  metrics.show(stats, {});
  CHECK(metrics.text().find("device_health_quarantined_devices{") == std::string::npos);
  CHECK(metrics.text().find("device_health_open_incidents{") != std::string::npos);
  metrics.show(dhc::ControllerStats{}, {});
  CHECK(metrics.text().find("node-a") == std::string::npos);
}

TEST_CASE("what was lost is told by cause in seconds, only grows, and is there before anything is lost") {
  dhc::Metrics metrics;
  dhc::ControllerStats stats;
  metrics.show(stats, {});
  CHECK(metrics.text().find(R"(device_health_device_seconds_lost_total{cause="quarantine"} 0)") != std::string::npos);
  stats.losses.lost.at(static_cast<std::size_t>(dhc::LossCause::KeptOff)) = dhc::Millis(2500);
  metrics.show(stats, {});
  metrics.show(stats, {});
  CHECK(metrics.text().find(R"(device_health_device_seconds_lost_total{cause="kept_off"} 2.5)") != std::string::npos);
}

TEST_CASE("each span has a histogram of its own") {
  dhc::Metrics metrics;
  metrics.show(dhc::Measured{.span = dhc::Span::ToReplacement, .took = dhc::Seconds(45)});
  metrics.show(dhc::Measured{.span = dhc::Span::NodeInterval, .took = dhc::Seconds(45)});
  const auto text = metrics.text();
  CHECK(text.find("device_health_report_to_replacement_seconds_sum 45") != std::string::npos);
  CHECK(text.find("device_health_node_incident_interval_seconds_sum 45") != std::string::npos);
  CHECK(text.find("device_health_report_to_taint_seconds_count 0") != std::string::npos);
}

TEST_CASE("predictions and outcomes are told side by side, by policy") {
  dhc::Metrics metrics;
  dhc::ControllerStats stats;
  stats.losses.would_evict = {{"gpus", 3}};
  stats.losses.would_do = {
      {{dhc::Deed::Taint, "gpus"}, 5}, {{dhc::Deed::Credit, "gpus"}, 6}, {{dhc::Deed::HandOver, "gpus"}, 7}};
  stats.losses.ends = {{{"gpus", dhc::PredictionEnd::Failed}, 2}};
  stats.losses.retries_credited = 4;
  metrics.show(stats, {});
  const auto text = metrics.text();
  CHECK(text.find(R"(device_health_would_evict_total{policy="gpus"} 3)") != std::string::npos);
  CHECK(text.find(R"(device_health_would_evict_outcomes_total{outcome="failed",policy="gpus"} 2)") !=
        std::string::npos);
  CHECK(text.find(R"(device_health_would_evict_outcomes_total{outcome="recovered",policy="gpus"} 0)") !=
        std::string::npos);
  CHECK(text.find("device_health_retries_credited_total 4") != std::string::npos);
  CHECK(text.find(R"(device_health_would_taint_total{policy="gpus"} 5)") != std::string::npos);
  CHECK(text.find(R"(device_health_would_credit_total{policy="gpus"} 6)") != std::string::npos);
  CHECK(text.find(R"(device_health_would_hand_over_total{policy="gpus"} 7)") != std::string::npos);
}

TEST_CASE("a watch is in one state at a time") {
  dhc::Metrics metrics;
  dhc::k8s::WatchStatus status;
  status.kind = dhc::k8s::Kind::Node;
  metrics.show(status, dhc::MonoTime(dhc::Seconds(1000)));
  CHECK(metrics.text().find(R"(device_health_watch_state{kind="Node",state="Syncing"} 1)") != std::string::npos);
  status.state = dhc::k8s::WatchState::Watching;
  metrics.show(status, dhc::MonoTime(dhc::Seconds(1000)));
  CHECK(metrics.text().find(R"(device_health_watch_state{kind="Node",state="Syncing"} 0)") != std::string::npos);
  CHECK(metrics.text().find(R"(device_health_watch_state{kind="Node",state="Watching"} 1)") != std::string::npos);
}

TEST_CASE("a watch's totals are counted once, however often they are shown") {
  dhc::Metrics metrics;
  dhc::k8s::WatchStatus status;
  status.json_bytes = 100;
  status.endings[0] = 2;
  metrics.show(status, dhc::MonoTime(dhc::Seconds(1000)));
  metrics.show(status, dhc::MonoTime(dhc::Seconds(1000)));
  status.json_bytes = 150;
  metrics.show(status, dhc::MonoTime(dhc::Seconds(1000)));
  const auto text = metrics.text();
  CHECK(text.find(R"(device_health_watch_bytes_total{format="json",kind="Pod"} 150)") != std::string::npos);
  CHECK(text.find(R"(device_health_watch_restarts_total{cause="Closed",kind="Pod"} 2)") != std::string::npos);
}

TEST_CASE("verdicts are shown by reason and policy, a reason that no verdict has is zero, its policy's row is gone") {
  dhc::Metrics metrics;
  dhc::Verdict verdict;
  verdict.reason = dhc::Reason::Braked;
  verdict.policy = "gpus";
  metrics.show(dhc::ControllerStats{}, {verdict});
  CHECK(metrics.text().find(R"(device_health_verdicts{policy="gpus",reason="Braked"} 1)") != std::string::npos);
  CHECK(metrics.text().find(R"(device_health_verdicts{policy="",reason="Braked"} 0)") != std::string::npos);
  metrics.show(dhc::ControllerStats{}, {});
  CHECK(metrics.text().find(R"(policy="gpus")") == std::string::npos);
  CHECK(metrics.text().find(R"(device_health_verdicts{policy="",reason="Braked"} 0)") != std::string::npos);
}
