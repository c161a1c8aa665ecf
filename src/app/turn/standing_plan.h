#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/wake_queue.h"
#include "domain/cluster/focus.h"
#include "domain/cluster/touched.h"
#include "domain/cluster/world.h"
#include "domain/contract/verdict.h"
#include "domain/incidents/incident_store.h"
#include "reconcilers/eviction/plan.h"
#include "reconcilers/shared/plan_input.h"

namespace dhc {

/// What one plan has decided about the devices in its focus, and what it says beside that.
struct Decided {
  MonoTime now;
  std::map<DeviceKey, std::vector<Verdict>> verdicts;
  std::vector<Verdict> others;
  std::map<DeviceKey, MonoTime> wakes;
  std::set<DeviceKey> again;
  std::set<std::string> pods_again;

  /// Takes what a reconciler has planned, but for its actions; its verdicts are gone then.
  template <class A>
  void take(Planned<A>& planned) {
    for (std::size_t i = 0; i < planned.verdicts.size(); ++i) {
      const bool is_about = i < planned.about.size() && !planned.about[i].scope.empty();
      (is_about ? verdicts[planned.about[i]] : others).push_back(std::move(planned.verdicts[i]));
    }
    for (const auto& [key, at] : planned.wakes) wake(key, at);
    again.insert(planned.again.begin(), planned.again.end());
    pods_again.insert(planned.pods_again.begin(), planned.pods_again.end());
  }
  /// Only what is still to come: what is past changes nothing by time alone.
  void wake(const DeviceKey& key, MonoTime at) {
    if (at <= now) return;
    auto& known = wakes.try_emplace(key, at).first->second;
    known = std::min(known, at);
  }
};

/// What stands of earlier plans, device by device, and what each decision rests on: what is touched of that, or whose
/// time has come, is decided anew, and nothing else.
class StandingPlan {
 public:
  /// What the next plan is about.
  [[nodiscard]] Focus focus_on(const Touched& touched, const World& world, const Now& now) const;
  /// Touches the devices whose decisions rest on watches of these kinds.
  void touch_views(KindSet changed, Touched& touched) const;
  /// Adds the devices of a driver or resource; with them what hangs together.
  void add_scope(Focus& focus, const std::string& scope, const World& world) const;
  /// Adds those that rest on answers which are others now than those on which they rest, or that change during the
  /// plan. True if there are any.
  [[nodiscard]] bool add_changed(Focus& focus, const eviction::Plan& plan, const World& world) const;

  /// What those that are not in focus rest on.
  [[nodiscard]] eviction::CommonQuestions questions(const Focus& focus) const;

  /// Puts what has been decided in the place of what stood.
  void replace(const Focus& focus, Decided decided, const eviction::Plan& evictions,
               const std::vector<const AffectedPod*>& in_focus, const ViewsAsked& views, const World& world,
               const IncidentStore& incidents, const Brake& brake);

  /// What is said of the status itself, after all else is known.
  void replace_last(std::vector<Verdict> verdicts);

  /// Verdicts of these reasons, or about a Job, that stand although nothing of them is in focus.
  [[nodiscard]] std::vector<Verdict> about_owners(const Focus& focus) const;

  /// Everything that is said, sorted by subject, device, reason.
  [[nodiscard]] const std::vector<Verdict>& verdicts() const { return sorted_; }
  /// When time alone changes what is decided about a device.
  [[nodiscard]] std::optional<MonoTime> wake_at(const Now& now) const { return wakes_.next_after(now.mono); }

 private:
  /// By which a device is found.
  struct Links {
    std::set<std::string> pods;
    std::set<std::string> nodes;
    std::set<std::string> owners;
    std::set<std::string> namespaces;
    std::set<std::string> gangs;
    friend bool operator==(const Links&, const Links&) = default;
  };
  struct Part {
    std::vector<Verdict> verdicts;
    std::optional<MonoTime> wake_at;
    std::optional<eviction::Rests> rests;
    KindSet views;  // on which it rests
    bool again = false;
    Links links;
  };
  using Index = std::map<std::string, std::set<DeviceKey>, std::less<>>;
  class Expansion;

  [[nodiscard]] static Links links_of(const DeviceKey& key, const World& world, const Brake& brake);
  void link(const DeviceKey& key, const Links& links, bool is_in);
  /// Enters the part in every index but the links', or takes it out.
  void index(const DeviceKey& key, const Part& part, bool is_in);
  void say(Verdict verdict);
  void unsay(const Verdict& verdict);
  void sort();

  std::map<DeviceKey, Part> parts_;
  Index by_pod_;
  Index by_node_;
  Index by_owner_;
  Index by_namespace_;
  Index by_gang_;
  std::set<DeviceKey> again_;                    // to be asked about by the next plan
  WakeQueue<DeviceKey> wakes_;                   // when time alone changes what is decided
  std::set<DeviceKey> resting_;                  // on what all have in common
  std::map<std::string, std::int64_t> limited_;  // how many rest on the limits, by driver or resource
  std::map<Demand, std::int64_t> looking_;       // and on a place, by what it must have
  std::set<DeviceKey> asking_;                   // about owners
  std::vector<Verdict> others_;
  std::vector<Verdict> last_;
  std::set<std::string> pods_again_;
  eviction::CommonAnswers answers_;  // on which all rest that do
  KindSet other_views_;              // on which rests what is about no device
  std::vector<Verdict> sorted_;
};

}  // namespace dhc
