#include "cli/policy_case.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_word.h"
#include "domain/policy/config_documents.h"
#include "domain/policy/config_reading.h"

namespace dhc::cli {

namespace {

constexpr int kMostOfOneThing = 1000;
constexpr Millis kLongestCase = std::chrono::hours(24 * 30);

std::string text_of(const YamlNode& node, std::string_view key, const std::string& path, MistakeList& mistakes) {
  const YamlNode* given = node.find(key);
  if (given == nullptr) return {};
  return read_text(*given, fmt::format("{}.{}", path, key), mistakes).value_or("");
}

int number_of(const YamlNode& node, std::string_view key, const std::string& path, int otherwise, int least,
              MistakeList& mistakes) {
  const YamlNode* given = node.find(key);
  if (given == nullptr) return otherwise;
  return static_cast<int>(
      read_number(*given, fmt::format("{}.{}", path, key), least, kMostOfOneThing, mistakes).value_or(otherwise));
}

std::optional<Millis> time_of(const YamlNode& node, std::string_view key, const std::string& path,
                              MistakeList& mistakes) {
  const YamlNode* given = node.find(key);
  if (given == nullptr) return std::nullopt;
  return read_duration(*given, fmt::format("{}.{}", path, key), Millis(0), mistakes).value_or(Millis(0));
}

/// Keys of any name, with strings.
std::map<std::string, std::string> map_of(const YamlNode& node, std::string_view key, const std::string& path,
                                          MistakeList& mistakes) {
  std::map<std::string, std::string> found;
  const YamlNode* given = node.find(key);
  if (given == nullptr) return found;
  const auto here = fmt::format("{}.{}", path, key);
  std::vector<std::string_view> any;
  for (std::size_t i = 0; i + 1 < given->items.size(); i += 2) any.emplace_back(given->items[i].text);
  if (!check_map(*given, here, any, mistakes)) return found;
  for (std::size_t i = 0; i + 1 < given->items.size(); i += 2) {
    const auto& value = given->items[i + 1];
    const bool is_empty = value.kind == YamlNode::Kind::Scalar && value.quoted && value.text.empty();
    const auto text =
        is_empty ? std::string()
                 : read_text(value, fmt::format("{}.{}", here, shown(given->items[i].text)), mistakes).value_or("");
    found[given->items[i].text] = text;
  }
  return found;
}

std::map<std::string, int> counts_of(const YamlNode& node, std::string_view key, const std::string& path,
                                     MistakeList& mistakes) {
  std::map<std::string, int> found;
  const YamlNode* given = node.find(key);
  if (given == nullptr) return found;
  const auto here = fmt::format("{}.{}", path, key);
  std::vector<std::string_view> any;
  for (std::size_t i = 0; i + 1 < given->items.size(); i += 2) any.emplace_back(given->items[i].text);
  if (!check_map(*given, here, any, mistakes)) return found;
  for (const auto name : any) found[std::string(name)] = number_of(*given, name, here, 0, 1, mistakes);
  return found;
}

/// The items of a list of maps, each with its path.
template <class Read>
void each_of(const YamlNode& spec, std::string_view key, MistakeList& mistakes, const Read& read) {
  const YamlNode* list = spec.find(key);
  const auto path = fmt::format("spec.{}", key);
  if (list == nullptr || !check_list(*list, path, mistakes)) return;
  for (std::size_t i = 0; i < list->items.size(); ++i) read(list->items[i], fmt::format("{}[{}]", path, i));
}

/// `of ml/train-*`, or `node-a/gpu-0`.
CaseDevice read_device(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  constexpr std::string_view kOf = "of ";
  CaseDevice device;
  const auto text = read_text(node, path, mistakes);
  if (!text) return device;
  const auto slash = text->find('/');
  if (text->starts_with(kOf)) {
    device.holder = text->substr(kOf.size());
    if (!device.holder.contains('/')) device.holder = "default/" + device.holder;
  } else if (slash == std::string::npos || slash == 0 || slash + 1 == text->size()) {
    mistakes.add(node.place, fmt::format("{} is {}, which names no device", path, shown(*text)),
                 "write node-a/gpu-0, or of NAMESPACE/POD for the device that a pod holds (* is wild)");
  } else {
    device.node = text->substr(0, slash);
    device.name = text->substr(slash + 1);
  }
  return device;
}

void read_node(const YamlNode& node, const std::string& path, PolicyCase& one, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 4> kKeys = {"name", "labels", "drivers", "resources"};
  if (!check_map(node, path, kKeys, mistakes)) return;
  sim::NodeShape shape;
  shape.name = text_of(node, "name", path, mistakes);
  if (!is_dns_subdomain(shape.name)) mistakes.add(node.place, path + " has no name of a node", "add name: node-a");
  shape.labels = map_of(node, "labels", path, mistakes);
  shape.drivers = counts_of(node, "drivers", path, mistakes);
  shape.plugins = counts_of(node, "resources", path, mistakes);
  one.nodes.push_back(std::move(shape));
}

void read_namespace(const YamlNode& node, const std::string& path, PolicyCase& one, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 3> kKeys = {"name", "labels", "annotations"};
  if (!check_map(node, path, kKeys, mistakes)) return;
  one.namespaces.push_back({.name = text_of(node, "name", path, mistakes),
                            .labels = map_of(node, "labels", path, mistakes),
                            .annotations = map_of(node, "annotations", path, mistakes)});
}

void read_workload(const YamlNode& node, const std::string& path, PolicyCase& one, MistakeList& mistakes) {
  using Kind = CaseWorkload::Kind;
  static constexpr std::array<std::string_view, 15> kKeys = {
      "job",      "deployment", "statefulSet", "daemonSet",   "pod",          "namespace",    "replicas", "driver",
      "resource", "devices",    "labels",      "annotations", "nodeSelector", "backoffLimit", "claim"};
  static constexpr std::array<Kind, 5> kKinds = {Kind::Job, Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet,
                                                 Kind::Pod};
  if (!check_map(node, path, kKeys, mistakes)) return;
  CaseWorkload found;
  int kinds = 0;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (node.find(kKeys.at(i)) == nullptr) continue;
    ++kinds;
    found.kind = kKinds.at(i);
    found.name = text_of(node, kKeys.at(i), path, mistakes);
  }
  if (kinds != 1) {
    mistakes.add(node.place, path + " is to be one of job, deployment, statefulSet, daemonSet and pod",
                 "write deployment: NAME");
  }
  if (node.find("namespace") != nullptr) found.ns = text_of(node, "namespace", path, mistakes);
  found.replicas = number_of(node, "replicas", path, 1, 1, mistakes);
  found.backoff_limit = number_of(node, "backoffLimit", path, 6, 0, mistakes);
  auto& shape = found.shape;
  shape.device_class = text_of(node, "driver", path, mistakes);
  shape.resource = text_of(node, "resource", path, mistakes);
  shape.shared_claim = text_of(node, "claim", path, mistakes);
  shape.count = number_of(node, "devices", path, 1, 1, mistakes);
  shape.labels = map_of(node, "labels", path, mistakes);
  shape.annotations = map_of(node, "annotations", path, mistakes);
  shape.node_selector = map_of(node, "nodeSelector", path, mistakes);
  if (shape.device_class.empty() == shape.resource.empty()) {
    mistakes.add(node.place, path + " is to name a driver or a resource",
                 "add driver: gpu.nvidia.com or resource: nvidia.com/gpu");
  }
  one.workloads.push_back(std::move(found));
}

void read_budget(const YamlNode& node, const std::string& path, PolicyCase& one, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 5> kKeys = {"name", "namespace", "labels", "minAvailable",
                                                            "maxUnavailable"};
  if (!check_map(node, path, kKeys, mistakes)) return;
  sim::BudgetShape shape;
  shape.name = text_of(node, "name", path, mistakes);
  if (node.find("namespace") != nullptr) shape.ns = text_of(node, "namespace", path, mistakes);
  shape.match_labels = map_of(node, "labels", path, mistakes);
  const bool has_least = node.find("minAvailable") != nullptr;
  const bool has_most = node.find("maxUnavailable") != nullptr;
  if (has_least) shape.min_available = number_of(node, "minAvailable", path, 1, 0, mistakes);
  if (has_most) shape.max_unavailable = number_of(node, "maxUnavailable", path, 1, 0, mistakes);
  if (has_least == has_most) {
    mistakes.add(node.place, path + " needs either minAvailable or maxUnavailable", "add maxUnavailable: 1");
  }
  one.budgets.push_back(std::move(shape));
}

/// `KEY=VALUE:EFFECT`, `KEY:EFFECT`.
void read_case_taint(const YamlNode& node, const std::string& path, CaseStep& step, MistakeList& mistakes) {
  const auto text = read_text(node, path, mistakes).value_or("");
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    mistakes.add(node.place, fmt::format("{} is {}, which is no taint", path, shown(text)),
                 "write gpu.nvidia.com/xid=79:NoSchedule");
    return;
  }
  const auto equals = std::min(text.find('='), colon);
  step.word = text.substr(0, equals);
  step.message = (equals < colon ? text.substr(equals + 1, colon - equals - 1) : std::string()) + text.substr(colon);
}

/// The kubelet's word: one of today's, or one that is like none of them.
std::string read_health(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  auto word = read_text(node, path, mistakes).value_or("");
  if (node.kind != YamlNode::Kind::Scalar || is_health_word(word)) return word;
  const auto meant = health_word_meant(word);
  mistakes.add(node.place, fmt::format("{} is {}, which no kubelet says", path, shown(word)),
               meant.empty() ? std::string("write Healthy, Unhealthy, Unknown, or a newer kubelet value")
                             : fmt::format("did you mean {}?", meant));
  return word;
}

void read_step(const YamlNode& node, const std::string& path, PolicyCase& one, MistakeList& mistakes) {
  using What = CaseStep::What;
  static constexpr std::array<std::string_view, 10> kKeys = {"health", "taint",   "untaint", "vanishes", "cordoned",
                                                             "labels", "message", "at",      "device",   "node"};
  constexpr std::size_t kDeeds = 6;
  if (!check_map(node, path, kKeys, mistakes)) return;
  CaseStep step;
  step.place = node.place;
  step.at = time_of(node, "at", path, mistakes).value_or(Millis(0));
  std::size_t deeds = 0;
  for (std::size_t i = 0; i < kDeeds; ++i) {
    const YamlNode* given = node.find(kKeys.at(i));
    if (given == nullptr) continue;
    ++deeds;
    step.what = static_cast<What>(i);
    const auto here = fmt::format("{}.{}", path, kKeys.at(i));
    switch (step.what) {
      case What::Health:
        step.word = read_health(*given, here, mistakes);
        break;
      case What::Taint:
        read_case_taint(*given, here, step, mistakes);
        break;
      case What::Untaint:
      case What::Vanish:
      case What::Cordon:
        step.is_on = read_flag(*given, here, mistakes).value_or(true);
        break;
      case What::Label:
        step.labels = map_of(node, "labels", path, mistakes);
        break;
    }
  }
  if (deeds != 1) {
    mistakes.add(node.place, path + " is to say one thing that happens",
                 "write one of health, taint, untaint, vanishes, cordoned, labels");
    return;
  }
  if (const YamlNode* given = node.find("message")) {
    if (step.what != What::Health) mistakes.add(given->place, path + ".message belongs to health", "remove it");
    if (step.what == What::Health) step.message = text_of(node, "message", path, mistakes);
  }
  const bool is_about_node = step.what == What::Cordon || step.what == What::Label;
  const auto needed = is_about_node ? std::string_view("node") : std::string_view("device");
  if (node.find(needed) == nullptr) {
    mistakes.add(node.place, fmt::format("{} has no {}", path, needed), fmt::format("add {}: ...", needed));
  } else if (is_about_node) {
    step.node = text_of(node, "node", path, mistakes);
  } else {
    step.device = read_device(*node.find("device"), path + ".device", mistakes);
  }
  one.steps.push_back(std::move(step));
}

std::optional<Reason> read_reason(const YamlNode& node, const std::string& path, MistakeList& mistakes) {
  const auto word = read_text(node, path, mistakes);
  if (!word) return std::nullopt;
  const auto found = std::ranges::find(all_reasons(), *word, &ReasonInfo::word);
  if (found != all_reasons().end()) return found->reason;
  std::vector<std::string_view> known;
  std::ranges::transform(all_reasons(), std::back_inserter(known), &ReasonInfo::word);
  const auto near = nearest_word(*word, known);
  mistakes.add(node.place, fmt::format("{} is {}, which is no reason of a verdict", path, shown(*word)),
               near.empty() ? std::string("`explain` lists all of them") : fmt::format("did you mean '{}'?", near));
  return std::nullopt;
}

void read_about(const YamlNode& node, const std::string& path, CaseExpectation& expected, MistakeList& mistakes) {
  using About = CaseExpectation::About;
  static constexpr std::array<std::pair<std::string_view, About>, 3> kSubjects = {
      {{"pod", About::Pod}, {"job", About::Job}, {"node", About::Node}}};
  int subjects = 0;
  for (const auto& [key, about] : kSubjects) {
    if (node.find(key) == nullptr) continue;
    ++subjects;
    expected.about = about;
    expected.name = text_of(node, key, path, mistakes);
    if (about != About::Node && !expected.name.contains('/')) expected.name = "default/" + expected.name;
  }
  if (const YamlNode* given = node.find("device")) {
    expected.device = read_device(*given, path + ".device", mistakes);
    expected.names_device = true;
    if (subjects == 0) expected.about = About::Device;
    if (subjects == 0) ++subjects;
  }
  if (subjects != 1) {
    mistakes.add(node.place, path + " is to name what it is about", "write one of pod, job, node, device");
  }
}

void read_expectation(const YamlNode& node, const std::string& path, PolicyCase& one, MistakeList& mistakes) {
  using When = CaseExpectation::When;
  static constexpr std::array<std::string_view, 9> kKeys = {"pod", "job",   "node", "device", "is",
                                                            "by",  "never", "at",   "until"};
  if (!check_map(node, path, kKeys, mistakes)) return;
  CaseExpectation expected;
  expected.place = node.place;
  read_about(node, path, expected, mistakes);
  const YamlNode* is = node.find("is");
  const YamlNode* never = node.find("never");
  const auto at = time_of(node, "at", path, mistakes);
  const auto by = time_of(node, "by", path, mistakes);
  const auto until = time_of(node, "until", path, mistakes);
  const bool is_positive = is != nullptr && never == nullptr && !until && at.has_value() != by.has_value();
  const bool is_negative = never != nullptr && is == nullptr && !at && !by;
  if (!is_positive && !is_negative) {
    mistakes.add(node.place, path + " is to say what, and when",
                 "write is: REASON with by: TIME or at: TIME; or never: REASON, with until: TIME if not to the end");
    return;
  }
  const auto reason = read_reason(is_positive ? *is : *never, path + (is_positive ? ".is" : ".never"), mistakes);
  if (!reason) return;
  expected.reason = *reason;
  expected.when = is_negative ? When::Never : at ? When::At : When::By;
  expected.time = is_negative ? until.value_or(Millis(-1)) : at ? *at : *by;
  one.expectations.push_back(std::move(expected));
}

void read_policies(const YamlNode& spec, PolicyCase& one, MistakeList& mistakes) {
  const YamlNode* given = spec.find("policies");
  if (given == nullptr) {
    mistakes.add(spec.place, "spec has no policies", "add policies: [FILE], relative to this file");
    return;
  }
  for (auto& [name, place] : read_texts(*given, "spec.policies", false, mistakes)) {
    one.policies.push_back(std::move(name));
    one.policy_places.push_back(place);
  }
}

/// The whole case lasts until everything has been said and done, and a while longer where something must never be.
void measure(PolicyCase& one, std::optional<Millis> given) {
  constexpr Millis kLonger = std::chrono::minutes(10);
  Millis last{0};
  bool is_open = false;
  for (const auto& step : one.steps) last = std::max(last, step.at);
  for (const auto& expected : one.expectations) {
    last = std::max(last, expected.time);
    is_open = is_open || expected.time < Millis(0);
  }
  one.length = given.value_or(last + (is_open ? kLonger : Millis(0)));
  for (auto& expected : one.expectations) {
    if (expected.time < Millis(0)) expected.time = one.length;
  }
}

PolicyCase read_spec(const YamlNode& spec, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 9> kKeys = {"policies", "mode",  "nodes",  "namespaces", "workloads",
                                                            "budgets",  "steps", "expect", "for"};
  static constexpr std::array<std::string_view, 2> kModes = {"observe", "enforce"};
  PolicyCase one;
  if (!check_map(spec, "spec", kKeys, mistakes)) return one;
  read_policies(spec, one, mistakes);
  if (const YamlNode* given = spec.find("mode")) {
    if (read_word(*given, "spec.mode", kModes, mistakes).value_or(1) == 0) one.mode = Mode::Observe;
  }
  const auto each = [&](std::string_view key, auto read) {
    each_of(spec, key, mistakes,
            [&](const YamlNode& node, const std::string& path) { read(node, path, one, mistakes); });
  };
  each("nodes", read_node);
  each("namespaces", read_namespace);
  each("workloads", read_workload);
  each("budgets", read_budget);
  each("steps", read_step);
  each("expect", read_expectation);
  // In one moment as they are written. Not stable_sort: libstdc++ 12's is deprecated to clang.
  std::ranges::sort(one.steps, {}, [](const CaseStep& step) { return std::tie(step.at, step.place); });
  if (one.expectations.empty() && spec.find("expect") == nullptr) {
    mistakes.add(spec.place, "spec expects nothing", "add expect: [{pod: NAME, is: Evicted, by: 5m}]");
  }
  const auto length = time_of(spec, "for", "spec", mistakes);
  measure(one, length);
  for (const auto& expected : one.expectations) {
    if (expected.time > one.length)
      mistakes.add(expected.place, "this is expected after the end of the case", "let spec.for be longer");
  }
  if (one.length > kLongestCase) mistakes.add(spec.place, "the case is longer than 720h", "shorten it");
  return one;
}

}  // namespace

std::expected<std::vector<PolicyCase>, std::vector<ConfigMistake>> parse_cases(const ConfigFile& file) {
  static constexpr std::array<std::string_view, 4> kKeys = {"apiVersion", "kind", "metadata", "spec"};
  static constexpr std::array<std::string_view, 1> kVersions = {"device-health.io/v1alpha1"};
  static constexpr std::array<std::string_view, 1> kKinds = {"PolicyTest"};
  std::vector<ConfigMistake> all;
  MistakeList mistakes(file.name, all);
  std::vector<PolicyCase> cases;
  const auto documents = read_yaml(file.text);
  if (!documents) {
    mistakes.add(documents.error().place, documents.error().message, documents.error().remedy);
    return std::unexpected(std::move(all));
  }
  for (const YamlNode& document : *documents) {
    if (document.kind == YamlNode::Kind::Null) continue;
    if (!check_map(document, "the document", kKeys, mistakes)) continue;
    const YamlNode* kind = document.find("kind");
    if (kind != nullptr && (kind->text == "DeviceHealthPolicy" || kind->text == "ControllerLimits")) {
      mistakes.add(kind->place, "this is a configuration, not a test of one",
                   "check it with `device-health-controller validate`, and name the file in a test's spec.policies");
      continue;
    }
    bool is_whole = true;
    for (const auto key : kKeys) {
      if (document.find(key) != nullptr) continue;
      mistakes.add(document.place, fmt::format("the document has no {}", key), fmt::format("add {}", key));
      is_whole = false;
    }
    if (!is_whole) continue;
    const bool is_ours = read_word(*document.find("apiVersion"), "apiVersion", kVersions, mistakes).has_value() &&
                         read_word(*document.find("kind"), "kind", kKinds, mistakes).has_value();
    if (!is_ours) continue;
    auto name = read_name(document, mistakes);
    auto one = read_spec(*document.find("spec"), mistakes);
    one.name = std::move(name).value_or("");
    one.file = file.name;
    one.place = document.place;
    cases.push_back(std::move(one));
  }
  if (cases.empty() && all.empty()) mistakes.add({}, "the file holds no test", "write a document of kind PolicyTest");
  if (!all.empty()) return std::unexpected(std::move(all));
  return cases;
}

}  // namespace dhc::cli
