#include "reconcilers/taint/strays.h"

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/limits/write_keys.h"

namespace dhc::taint {

namespace {

class StrayPlanner {
 public:
  StrayPlanner(const PlanInput& input, Speech& speech) : input_(input), speech_(speech) {}

  void run() {
    take_back_cards();
    const auto& inventory = input_.world.inventory();
    for_each_in(input_.focus, inventory.named_rules(), [&](const DeviceKey& key, const auto& /*uids*/) {
      for (const auto* rule : inventory.named_rules_for(key)) look_at(key, *rule);
    });
  }

 private:
  /// A rule of the device's own incident is taken back by that.
  void take_back_cards() {
    for (const auto& [name, altered] : input_.requests.altered_rules().all()) {
      const auto* rule = input_.world.inventory().rule_named(name);
      if (!may_be_card_rule(name) || rule == nullptr || rule->meta.uid != altered.uid || rule->meta.deletion) continue;
      if (!is_in(input_.focus, altered.key)) continue;
      speech_.ask_again(altered.key);
      if (speech_.held_back(rule_write_key(name), rule->meta.resource_version)) continue;
      speech_.act(DeleteRule{.name = name,
                             .api_version = input_.world.inventory().rules_api_version(),
                             .uid = altered.uid,
                             .resource_version = rule->meta.resource_version,
                             .key = altered.key,
                             .device = to_string(altered.key),
                             .policy = std::string(k8s::find(rule->meta.annotations, kPolicyAnnotation).value_or("")),
                             .of_card = true});
    }
  }

  void look_at(const DeviceKey& key, const k8s::DeviceTaintRule& rule) {
    if (rule.meta.deletion) return;
    const auto* record = input_.incidents.find(key);
    const bool is_spoken_for = record != nullptr && &rule == input_.world.inventory().rule_named_for(key);
    if (is_spoken_for) return;
    const auto changed = changed_by_other(rule);
    if (!changed) return;
    DeviceRecord nobody;
    nobody.key = key;
    speech_.say(
        record == nullptr ? nobody : *record,
        {.reason = Reason::ChangedByOther,
         .message = fmt::format("a DeviceTaintRule {} stands that is not as we make it ({}); it is left as it is",
                                rule.meta.name, *changed),
         .until = {}});
  }

  const PlanInput& input_;
  Speech& speech_;
};

}  // namespace

void plan_strays(const PlanInput& input, Speech& speech) { StrayPlanner(input, speech).run(); }

}  // namespace dhc::taint
