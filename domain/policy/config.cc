#include "domain/policy/config.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/yaml_tree.h"
#include "domain/policy/config_documents.h"
#include "domain/policy/config_reach.h"
#include "domain/policy/config_reading.h"
#include "domain/policy/manifest.h"

namespace dhc {

namespace {

constexpr std::string_view kApiVersion = "device-health.io/v1alpha1";
constexpr std::array<std::string_view, 2> kKinds = {"DeviceHealthPolicy", "ControllerLimits"};
constexpr std::size_t kMostPolicies = 200;

/// A document's value and where it stands.
template <class T>
struct Placed {
  T value;
  std::string file;
  TextPlace place;
};

/// All documents of all files.
class DocumentsReader {
 public:
  void read(const ConfigFile& file);
  [[nodiscard]] ConfigResult finish();

 private:
  void read_document(const YamlNode& document, const std::string& file, MistakeList& mistakes);
  void check_names();
  void check_limits();
  void check_conditions();
  void check_reach();

  std::vector<Placed<DevicePolicy>> policies_;
  std::vector<Placed<Limits>> limits_;
  std::vector<ConfigMistake> mistakes_;
  std::vector<ConfigMistake> warnings_;
};

void sort_by_place(std::vector<ConfigMistake>& mistakes) {
  std::ranges::sort(mistakes, [](const ConfigMistake& a, const ConfigMistake& b) {
    return std::tie(a.file, a.line, a.column, a.message) < std::tie(b.file, b.line, b.column, b.message);
  });
}

void DocumentsReader::read(const ConfigFile& file) {
  MistakeList mistakes(file.name, mistakes_, &warnings_);
  const auto documents = read_yaml(file.text);
  if (!documents) {
    const YamlMistake& mistake = documents.error();
    mistakes.add(mistake.place, mistake.message, mistake.remedy);
    return;
  }
  const auto blank = [](const YamlNode& document) { return document.kind == YamlNode::Kind::Null; };
  if (std::ranges::all_of(*documents, blank)) {
    mistakes.add({}, "the file holds no document", "write a DeviceHealthPolicy, or remove the file");
  }
  for (const YamlNode& document : *documents) {
    if (!blank(document)) read_document(document, file.name, mistakes);
  }
}

void DocumentsReader::read_document(const YamlNode& document, const std::string& file, MistakeList& mistakes) {
  static constexpr std::array<std::string_view, 4> kKeys = {"apiVersion", "kind", "metadata", "spec"};
  static constexpr std::array<std::string_view, 1> kVersions = {kApiVersion};
  if (mistakes.full() || !check_map(document, "the document", kKeys, mistakes)) return;
  if (const YamlNode* version = document.find("apiVersion")) {
    static_cast<void>(read_word(*version, "apiVersion", kVersions, mistakes));
  } else {
    mistakes.add(document.place, "the document has no apiVersion", fmt::format("add apiVersion: {}", kApiVersion));
  }
  auto name = read_name(document, mistakes);
  const YamlNode* kind = document.find("kind");
  if (kind == nullptr) {
    mistakes.add(document.place, "the document has no kind", "add kind: DeviceHealthPolicy or ControllerLimits");
    return;
  }
  if (kind->text == "PolicyTest") {
    mistakes.add(kind->place, "this is a test of policies, not a configuration",
                 "play it with `device-health-controller test`, and leave it out here");
    return;
  }
  const auto which = read_word(*kind, "kind", kKinds, mistakes);
  const YamlNode* spec = document.find("spec");
  if (spec == nullptr) mistakes.add(document.place, "the document has no spec", "add spec: {...}");
  if (!which || spec == nullptr) return;
  if (*which == 1) {
    limits_.push_back({read_limits_spec(*spec, mistakes), file, document.place});
    return;
  }
  if (policies_.size() == kMostPolicies) {
    mistakes.add(document.place, fmt::format("more than {} policies", kMostPolicies),
                 "join policies that differ only in what they match");
    return;
  }
  if (policies_.size() > kMostPolicies) return;
  DevicePolicy policy = read_policy_spec(*spec, mistakes);
  policy.name = std::move(name).value_or("");
  policies_.push_back({std::move(policy), file, document.place});
}

void DocumentsReader::check_names() {
  std::map<std::string_view, const Placed<DevicePolicy>*> seen;
  for (const auto& policy : policies_) {
    const auto [first, fresh] = seen.emplace(policy.value.name, &policy);
    if (fresh || policy.value.name.empty()) continue;
    MistakeList(policy.file, mistakes_)
        .add(policy.place,
             fmt::format("policy '{}' is already defined at {}:{}", policy.value.name, first->second->file,
                         first->second->place.line),
             "give it another name, or remove one");
  }
}

void DocumentsReader::check_limits() {
  for (std::size_t i = 1; i < limits_.size(); ++i) {
    MistakeList(limits_[i].file, mistakes_)
        .add(limits_[i].place,
             fmt::format("ControllerLimits are already given at {}:{}", limits_[0].file, limits_[0].place.line),
             "keep one document of them");
  }
}

/// One condition of a node cannot be a problem's and health's.
void DocumentsReader::check_conditions() {
  std::map<std::string_view, const Placed<DevicePolicy>*> seen;
  for (const auto& policy : policies_) {
    const auto& rules = policy.value.hand_over;
    if (!rules || !rules->condition || rules->condition->type.empty()) continue;
    const auto [first, fresh] = seen.emplace(rules->condition->type, &policy);
    if (fresh || first->second->value.hand_over->condition == rules->condition) continue;
    MistakeList(policy.file, mistakes_)
        .add(policy.place,
             fmt::format("policy '{}' and policy '{}' ({}:{}) disagree on the status of condition {} that means "
                         "unhealthy",
                         policy.value.name, first->second->value.name, first->second->file, first->second->place.line,
                         shown(rules->condition->type)),
             "write the same handOver.nodeCondition.unhealthy in both, or another type");
  }
}

void DocumentsReader::check_reach() {
  // The place decides between equal names, which are a mistake anyway.
  std::ranges::sort(policies_, [](const auto& a, const auto& b) {
    return std::tie(b.value.priority, a.value.name, a.file, a.place) <
           std::tie(a.value.priority, b.value.name, b.file, b.place);
  });
  // Between documents with mistakes this would only guess.
  if (!mistakes_.empty()) return;
  for (std::size_t later = 1; later < policies_.size(); ++later) {
    const auto& policy = policies_[later];
    const auto earlier =
        std::ranges::find_if(policies_.begin(), policies_.begin() + static_cast<std::ptrdiff_t>(later),
                             [&](const auto& other) { return covers(other.value.match, policy.value.match); });
    if (earlier == policies_.begin() + static_cast<std::ptrdiff_t>(later)) continue;
    MistakeList(policy.file, mistakes_)
        .add(policy.place,
             fmt::format("policy '{}' (priority {}) can never apply: policy '{}' (priority {}, {}:{}) comes first and "
                         "matches all that it does",
                         policy.value.name, policy.value.priority, earlier->value.name, earlier->value.priority,
                         earlier->file, earlier->place.line),
             "give it a higher priority, narrow the other's match, or remove it");
  }
}

ConfigResult DocumentsReader::finish() {
  check_names();
  check_limits();
  check_conditions();
  check_reach();
  if (!mistakes_.empty()) {
    sort_by_place(mistakes_);
    return std::unexpected(std::move(mistakes_));
  }
  Config config;
  for (auto& policy : policies_) config.policies.push_back(std::move(policy.value));
  config.limits_given = !limits_.empty();
  if (config.limits_given) config.limits = limits_.front().value;
  sort_by_place(warnings_);
  config.warnings = std::move(warnings_);
  return config;
}

}  // namespace

ConfigResult parse_config(std::span<const ConfigFile> files) {
  DocumentsReader reader;
  for (const ConfigFile& file : files) reader.read(file);
  return reader.finish();
}

ConfigResult parse_config_map(std::string_view ns, std::string_view name,
                              const std::map<std::string, std::string, std::less<>>& data) {
  auto found = unpack_config_map(fmt::format("configmap {}/{}", ns, name), data);
  auto& mistakes = found.mistakes;
  auto config = parse_config(found.files);
  if (!config) mistakes.insert(mistakes.end(), config.error().begin(), config.error().end());
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes));
  return config;
}

}  // namespace dhc
