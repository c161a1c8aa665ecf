#include "bench/fleet_year/rivals.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dhc::year {
namespace {

using sim::Json;
using sim::Res;

std::pair<std::string, std::string> split(const std::string& name) {
  const auto slash = name.find('/');
  return {name.substr(0, slash), name.substr(slash + 1)};
}

/// Acts on a device some time after it was reported, if it is then still bad.
class Patient : public Contender {
 public:
  Patient(Fleet& fleet, Millis after) : fleet_(fleet), after_(after) {}

  void reported(std::size_t device, bool bad) override {
    if (bad) {
      due_[device] = fleet_.now.mono + after_;
    } else {
      due_.erase(device);
      well_.insert(device);
    }
  }

  [[nodiscard]] std::optional<MonoTime> next_due() const override {
    std::optional<MonoTime> next;
    for (const auto& [device, at] : due_) next = next ? std::min(*next, at) : at;
    return next;
  }

  [[nodiscard]] bool act() override {
    bool acted = false;
    for (const auto device : std::exchange(well_, {})) acted = on_well(device) || acted;
    std::vector<std::size_t> ready;
    for (const auto& [device, at] : due_) {
      if (at <= fleet_.now.mono) ready.push_back(device);
    }
    for (const auto device : ready) {
      due_.erase(device);
      if (const auto again = on_bad(device)) due_[device] = fleet_.now.mono + *again;
      acted = true;
    }
    return acted;
  }

 protected:
  /// When to come again, if at all.
  virtual std::optional<Millis> on_bad(std::size_t device) = 0;
  virtual bool on_well(std::size_t device) = 0;
  [[nodiscard]] Fleet& fleet() { return fleet_; }
  [[nodiscard]] const Fleet& fleet() const { return fleet_; }

 private:
  Fleet& fleet_;
  Millis after_;
  std::map<std::size_t, MonoTime> due_;
  std::set<std::size_t> well_;
};

class Nobody : public Patient {
 public:
  Nobody(Fleet& fleet, Millis after) : Patient(fleet, after), again_(after) {}

 private:
  std::optional<Millis> on_bad(std::size_t device) override {
    if (const auto holder = fleet().holder_of(device); !holder.empty()) {
      const auto [ns, name] = split(holder);
      static_cast<void>(fleet().cluster.kubectl_delete(Res::Pods, ns, name));
    }
    return again_;
  }
  bool on_well(std::size_t /*device*/) override { return false; }

  Millis again_;
};

class Drain : public Patient {
 public:
  explicit Drain(Fleet& fleet) : Patient(fleet, kRivalAfter) {}

 private:
  std::optional<Millis> on_bad(std::size_t device) override {
    const auto node = fleet().node_of(device);
    if (cordoned_.insert(node).second) fleet().cluster.cordon(node, true);
    return evict_all(node) ? std::optional<Millis>(Seconds(5)) : std::nullopt;
  }

  bool on_well(std::size_t device) override {
    const auto per_node = static_cast<std::size_t>(fleet().shape().devices);
    const auto first = device / per_node * per_node;
    for (auto other = first; other < first + per_node; ++other) {
      if (fleet().is_bad(other)) return false;
    }
    const auto node = fleet().node_of(device);
    if (cordoned_.erase(node) == 0) return false;
    fleet().cluster.cordon(node, false);
    return true;
  }

  /// True if a pod is left.
  bool evict_all(const std::string& node) {
    bool refused = false;
    const auto pods = sim::pods_where(fleet().cluster.store(), [&](const Json& pod) {
      return sim::text(pod, {"spec", "nodeName"}) == node && !sim::is_deleting(pod) && !sim::is_terminal(pod);
    });
    for (const auto& pod : pods) {
      const auto ns = sim::ns_of(*pod);
      const auto name = sim::name_of(*pod);
      k8s::Request request;
      request.method = k8s::Method::Post;
      request.target = fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", ns, name);
      request.body =
          Json{{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", name}, {"namespace", ns}}}}
              .dump();
      request.headers.push_back({"Content-Type", "application/json"});
      refused = fleet().cluster.handle(request, fleet().now).status >= 300 || refused;
    }
    return refused;
  }

  std::set<std::string> cordoned_;
};

class NoExecute : public Patient {
 public:
  explicit NoExecute(Fleet& fleet) : Patient(fleet, kRivalAfter) {}

 private:
  [[nodiscard]] std::string rule_of(std::size_t device) const {
    return fmt::format("bad-{}-{}", fleet().node_of(device), fleet().name_of(device));
  }

  std::optional<Millis> on_bad(std::size_t device) override {
    const Json selector = {{"driver", kDriver}, {"pool", fleet().node_of(device)}, {"device", fleet().name_of(device)}};
    const Json taint = {{"key", "example.com/bad"}, {"value", "bad"}, {"effect", "NoExecute"}};
    static_cast<void>(
        fleet().cluster.kubectl_create(Res::TaintRules, {{"apiVersion", sim::api_version_of(Res::TaintRules)},
                                                         {"kind", "DeviceTaintRule"},
                                                         {"metadata", {{"name", rule_of(device)}}},
                                                         {"spec", {{"deviceSelector", selector}, {"taint", taint}}}}));
    rules_.insert(device);
    return std::nullopt;
  }

  bool on_well(std::size_t device) override {
    if (rules_.erase(device) == 0) return false;
    static_cast<void>(fleet().cluster.kubectl_delete(Res::TaintRules, "", rule_of(device)));
    return true;
  }

  std::set<std::size_t> rules_;
};

}  // namespace

std::string_view to_string(Kind kind) {
  static constexpr std::array<std::string_view, kKinds.size()> kNames = {"nobody", "drain the node", "NoExecute rule",
                                                                         "device-health-controller"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::unique_ptr<Contender> make_nobody(Fleet& fleet, Millis noticed_after) {
  return std::make_unique<Nobody>(fleet, noticed_after);
}
std::unique_ptr<Contender> make_drain(Fleet& fleet) { return std::make_unique<Drain>(fleet); }
std::unique_ptr<Contender> make_no_execute(Fleet& fleet) { return std::make_unique<NoExecute>(fleet); }

}  // namespace dhc::year
