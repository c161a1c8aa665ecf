#include "app/losses/predictions.h"

#include <optional>

namespace dhc {

namespace {
/// None: it is there still.
std::optional<PredictionEnd> end_of_pod(std::string_view uid, const World& world) {
  const auto* record = world.pod(uid);
  if (record == nullptr) return PredictionEnd::Deleted;
  if (record->pod.phase == k8s::PodPhase::Failed) return PredictionEnd::Failed;
  if (record->pod.phase == k8s::PodPhase::Succeeded) return PredictionEnd::Succeeded;
  if (record->pod.meta.deletion) return PredictionEnd::Deleted;
  return std::nullopt;
}
}  // namespace

std::string_view to_string(PredictionEnd end) {
  switch (end) {
    case PredictionEnd::Recovered:
      return "recovered";
    case PredictionEnd::Failed:
      return "failed";
    case PredictionEnd::Succeeded:
      return "succeeded";
    case PredictionEnd::Deleted:
      return "deleted";
    case PredictionEnd::Evicted:
      return "evicted";
  }
  return "";
}

std::string Predictions::label_of(const std::string& policy) const {
  return foretold_.size() < kMostPolicies || foretold_.contains(policy) ? policy : std::string();
}

void Predictions::foretell(const std::string& uid, const std::string& policy, const DeviceKey& key, bool is_new) {
  if (open_.contains(uid)) return;
  const auto label = label_of(policy);
  auto& count = foretold_[label];
  if (is_new) ++count;
  if (open_.size() == kMostPods) return;
  open_.emplace(uid, Open{.policy = label, .key = key});
  pods_of_[key].insert(uid);
}

void Predictions::look(const World& world, const Focus& focus, const std::function<bool(const DeviceKey&)>& is_bad) {
  const auto settle = [&](auto open) {
    if (const auto how = end_of_pod(open->first, world)) {
      end(open, *how);
    } else if (!is_bad(open->second.key)) {
      end(open, PredictionEnd::Recovered);
    }
  };
  if (focus.all) {
    for (auto open = open_.begin(); open != open_.end();) settle(open++);
    return;
  }
  if (open_.empty()) return;
  auto pods = focus.pods;
  for_each_in(&focus, pods_of_, [&](const auto&, const auto& those) { pods.insert(those.begin(), those.end()); });
  for (const auto& uid : pods) {
    if (const auto open = open_.find(uid); open != open_.end()) settle(open);
  }
}

void Predictions::evicted(const std::string& uid) {
  if (const auto open = open_.find(uid); open != open_.end()) end(open, PredictionEnd::Evicted);
}

void Predictions::end(std::map<std::string, Open, std::less<>>::iterator open, PredictionEnd how) {
  ++ends_[{open->second.policy, how}];
  const auto those = pods_of_.find(open->second.key);
  those->second.erase(open->first);
  if (those->second.empty()) pods_of_.erase(those);
  open_.erase(open);
}

}  // namespace dhc
