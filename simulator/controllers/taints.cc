#include "simulator/controllers/taints.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

std::string key_of(const std::string& driver, const std::string& pool, const std::string& device) {
  return driver + "/" + pool + "/" + device;
}

DeviceTaint taint_of(const Json& taint) {
  return {text(taint, {"key"}), text(taint, {"value"}), text(taint, {"effect"})};
}

std::uint64_t changed_at(const Store& store, Res res) {
  return store.changes(res).empty() ? 0 : store.changes(res).back().rv;
}

bool tolerates(const Json& pod_spec, const Json& taint) {
  return std::ranges::any_of(list(pod_spec, {"tolerations"}), [&](const Json& toleration) {
    const auto key = text(toleration, {"key"});
    const auto effect = text(toleration, {"effect"});
    if (!effect.empty() && effect != text(taint, {"effect"})) return false;
    if (text(toleration, {"operator"}) == "Exists") return key.empty() || key == text(taint, {"key"});
    return key == text(taint, {"key"}) && text(toleration, {"value"}) == text(taint, {"value"});
  });
}

}  // namespace

bool rule_selects(const Json& rule, const std::string& driver, const std::string& pool, const std::string& device) {
  const Json* selector = field(rule, {"spec", "deviceSelector"});
  if (selector == nullptr || selector->is_null()) return false;
  const auto fits = [&](std::string_view part, const std::string& value) {
    const Json* wanted = field(*selector, {part});
    return wanted == nullptr || wanted->is_null() || *wanted == value;
  };
  return fits("driver", driver) && fits("pool", pool) && fits("device", device);
}

void DeviceTaints::note_one(const std::string& key, DeviceTaint taint) {
  if (taint.effect == "NoExecute") executing_.insert(key);
  of_one_[key].push_back(std::move(taint));
}

void DeviceTaints::refresh(const Store& store, bool honour_rules) {
  const auto slices_at = changed_at(store, Res::Slices);
  const auto rules_at = changed_at(store, Res::TaintRules);
  if (slices_at == slices_at_ && rules_at == rules_at_ && honour_rules == honour_rules_) return;
  slices_at_ = slices_at;
  rules_at_ = rules_at;
  honour_rules_ = honour_rules;
  of_one_.clear();
  wide_.clear();
  executing_.clear();
  executes_widely_ = false;
  for (const auto& [name, slice] : store.all(Res::Slices)) {
    for (const auto& device : list(*slice, {"spec", "devices"})) {
      const auto taints = list(device, {"taints"});
      if (taints.empty()) continue;
      const auto key =
          key_of(text(*slice, {"spec", "driver"}), text(*slice, {"spec", "pool", "name"}), text(device, {"name"}));
      for (const auto& taint : taints) note_one(key, taint_of(taint));
    }
  }
  if (!honour_rules) return;
  for (const auto& [name, rule] : store.all(Res::TaintRules)) {
    const auto part = [&](std::string_view which) { return text(*rule, {"spec", "deviceSelector", which}); };
    const auto driver = part("driver");
    const auto pool = part("pool");
    const auto device = part("device");
    if (driver.empty() || pool.empty() || device.empty()) {
      wide_.push_back(rule);
      executes_widely_ = executes_widely_ || text(*rule, {"spec", "taint", "effect"}) == "NoExecute";
    } else {
      note_one(key_of(driver, pool, device), taint_of((*rule)["spec"]["taint"]));
    }
  }
}

std::vector<DeviceTaint> DeviceTaints::of(const std::string& driver, const std::string& pool,
                                          const std::string& device) const {
  std::vector<DeviceTaint> taints;
  if (const auto it = of_one_.find(key_of(driver, pool, device)); it != of_one_.end()) taints = it->second;
  for (const auto& rule : wide_) {
    if (rule_selects(*rule, driver, pool, device)) taints.push_back(taint_of((*rule)["spec"]["taint"]));
  }
  return taints;
}

const Json* untolerated_taint(const Json& node, const Json& pod_spec, bool of_daemon_set) {
  for (const auto& taint : list(node, {"spec", "taints"})) {
    const auto effect = text(taint, {"effect"});
    if (effect != "NoSchedule" && effect != "NoExecute") continue;
    if (of_daemon_set && text(taint, {"key"}).starts_with("node.kubernetes.io/")) continue;
    if (!tolerates(pod_spec, taint)) return &taint;
  }
  return nullptr;
}

void set_node_taint(Json& node, const std::string& key, bool there, const std::string& time) {
  Json kept = Json::array();
  for (const auto& taint : list(node, {"spec", "taints"})) {
    if (text(taint, {"key"}) != key) kept.push_back(taint);
  }
  if (there) kept.push_back({{"key", key}, {"effect", "NoSchedule"}, {"timeAdded", time}});
  if (kept.empty()) {
    node["spec"].erase("taints");
  } else {
    node["spec"]["taints"] = std::move(kept);
  }
}

}  // namespace dhc::sim
