#include "app/metrics.h"

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

namespace {
/// A registry in which every metric has been touched.
std::string everything() {
  dhc::Metrics metrics;
  metrics.show({}, {});
  metrics.count({.action = dhc::eviction::EvictPod{}, .status = {}});
  metrics.reaction(std::chrono::milliseconds(3));
  metrics.watch_state(dhc::k8s::Kind::Pod, "watching");
  metrics.watch_restarted(dhc::k8s::Kind::Pod, "closed");
  metrics.watch_bytes(dhc::k8s::Kind::Pod, 10);
  metrics.bad_object(dhc::k8s::Kind::Pod);
  metrics.policy_reloaded(true);
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
  const auto documented = found(page.str(), std::regex("\\| `(dhc_[a-z_]+)"));
  const auto served = found(everything(), std::regex("# TYPE (dhc_[a-z_]+) "));
  CHECK_FALSE(served.empty());
  CHECK(documented == served);
}

TEST_CASE("actions are counted by action and by what became of them") {
  dhc::Metrics metrics;
  metrics.count({.action = dhc::eviction::EvictPod{}, .status = {}});
  metrics.count({.action = dhc::eviction::EvictPod{}, .status = dhc::fail(dhc::ErrorKind::Blocked, "no")});
  metrics.count({.action = dhc::eviction::EvictPod{}, .status = dhc::fail(dhc::ErrorKind::Blocked, "no")});
  const auto text = metrics.text();
  CHECK(text.find(R"(dhc_actions_total{action="EvictPod",outcome="ok"} 1)") != std::string::npos);
  CHECK(text.find(R"(dhc_actions_total{action="EvictPod",outcome="Blocked"} 2)") != std::string::npos);
}

TEST_CASE("a watch is in one state at a time") {
  dhc::Metrics metrics;
  metrics.watch_state(dhc::k8s::Kind::Node, "listing");
  metrics.watch_state(dhc::k8s::Kind::Node, "watching");
  const auto text = metrics.text();
  CHECK(text.find(R"(dhc_watch_state{kind="Node",state="listing"} 0)") != std::string::npos);
  CHECK(text.find(R"(dhc_watch_state{kind="Node",state="watching"} 1)") != std::string::npos);
}

TEST_CASE("a reason that no verdict has any more is shown as zero") {
  dhc::Metrics metrics;
  dhc::Verdict verdict;
  verdict.reason = dhc::Reason::Braked;
  metrics.show({}, {verdict});
  CHECK(metrics.text().find(R"(dhc_verdicts{reason="Braked"} 1)") != std::string::npos);
  metrics.show({}, {});
  CHECK(metrics.text().find(R"(dhc_verdicts{reason="Braked"} 0)") != std::string::npos);
}
