#pragma once
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml_tree.h"
#include "domain/contract/reasons.h"
#include "domain/policy/config.h"
#include "simulator/script/cluster.h"

namespace dhc::cli {

/// A device of a case: by its node and name, or the first that a pod holds when it is first asked for.
struct CaseDevice {
  std::string node;
  std::string name;
  std::string holder;  ///< Glob over `namespace/name`; empty: by node and name.
  friend auto operator<=>(const CaseDevice&, const CaseDevice&) = default;
};

struct CaseNamespace {
  std::string name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
};

/// What makes pods; a bare pod is one.
struct CaseWorkload {
  enum class Kind : std::uint8_t { Job, Deployment, StatefulSet, DaemonSet, Pod };
  Kind kind = Kind::Deployment;
  std::string ns = "default";
  std::string name;
  int replicas = 1;
  int backoff_limit = 6;
  sim::PodShape shape;
};

/// What befalls the cluster at a moment.
struct CaseStep {
  enum class What : std::uint8_t { Health, Taint, Untaint, Vanish, Cordon, Label };
  Millis at{0};
  What what = What::Health;
  CaseDevice device;
  std::string node;     ///< Of Cordon and Label.
  bool is_on = true;    ///< Of Untaint (all of the driver's own), Vanish and Cordon; false takes it back.
  std::string word;     ///< Of Health: the kubelet's. Of Taint: the key.
  std::string message;  ///< Of Health: the driver's. Of Taint: `value:effect`.
  std::map<std::string, std::string> labels;
  TextPlace place;
};

/// What must be said, or must not.
struct CaseExpectation {
  enum class When : std::uint8_t { At, By, Never };
  When when = When::By;
  Millis time{0};  ///< Of Never: up to then.
  enum class About : std::uint8_t { Pod, Job, Node, Device };
  About about = About::Pod;
  std::string name;   ///< Glob over `namespace/name`, or over a node's name.
  CaseDevice device;  ///< Of Device; of Pod: on its account, if it is named.
  bool names_device = false;
  Reason reason{};
  TextPlace place;
};

/// One test: a cluster, a configuration, what befalls, what is expected.
struct PolicyCase {
  std::string name;
  std::string file;
  TextPlace place;
  Mode mode = Mode::Enforce;             ///< The controller's own.
  std::vector<std::string> policies;     ///< Files, as they are named.
  std::vector<TextPlace> policy_places;  ///< Where each is named.
  std::vector<sim::NodeShape> nodes;
  std::vector<CaseNamespace> namespaces;
  std::vector<CaseWorkload> workloads;
  std::vector<sim::BudgetShape> budgets;
  std::vector<CaseStep> steps;  ///< In the order of their times.
  std::vector<CaseExpectation> expectations;
  Millis length{0};
};

/// The PolicyTest documents of a file, in their order; or all that is wrong with them.
[[nodiscard]] std::expected<std::vector<PolicyCase>, std::vector<ConfigMistake>> parse_cases(const ConfigFile& file);

}  // namespace dhc::cli
