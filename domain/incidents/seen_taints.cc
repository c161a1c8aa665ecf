#include "domain/incidents/seen_taints.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "domain/contract/operator_time.h"
#include "domain/contract/our_taint.h"
#include "domain/incidents/node_case.h"

namespace dhc {

namespace {

class Looker {
 public:
  Looker(DeviceRecord& record, const SeenTaints& seen) : record_(record), seen_(seen) {}

  bool look() {
    acknowledge_by_node();
    if (record_.node_tainted || needs_node_taint(seen_.world, record_.key)) look_at_node();
    if (record_.key.source == DeviceKey::Source::Dra) look_at_rule();
    return changed_;
  }

 private:
  template <class T, class U>
  void set(T& member, U&& value) {
    if (member == value) return;
    member = std::forward<U>(value);
    changed_ = true;
  }

  void look_at_rule() {
    const auto& inventory = seen_.world.inventory();
    if (inventory.rules_api_version().empty()) return;  // nobody removed anything: the kind is not served just now
    const auto* rule = inventory.rule_named_for(record_.key);
    if (rule != nullptr && !is_our_rule(*rule)) return;
    if (rule == nullptr || rule->meta.deletion) {
      const bool was_seen = (!record_.rule_uid.empty() || went_away()) && !is_lost();
      if (was_seen && !record_.is_removing() && record_.open) acknowledge(Acknowledged::Removed);
      set(record_.rule_uid, std::string());
      set(record_.removing, false);
      record_.removal_sent = false;
      return;
    }
    set(record_.rule_uid, rule->meta.uid);
    if (!std::exchange(record_.knows_rule, true)) learn_from(*rule);
    // A rule on its way out says nothing about the incident that began since.
    if (!record_.open || record_.is_removing()) return;
    set(record_.was_tainted, true);
    if (changed_by_other(*rule)) return acknowledge(Acknowledged::Changed);
    if (is_acknowledged(*rule)) acknowledge(Acknowledged::Annotated);
  }

  /// Seen to go in this incident, by us or while another led; that of an incident before says nothing.
  [[nodiscard]] bool went_away() const {
    if (seen_.removed_rules.empty()) return false;  // most turns: no names are made
    return std::ranges::any_of(names(), [&](const std::string& name) {
      const auto found = seen_.removed_rules.find(name);
      return found != seen_.removed_rules.end() && found->second >= record_.opened_at;
    });
  }

  [[nodiscard]] bool is_lost() const {
    return std::ranges::any_of(names(), [&](const std::string& name) { return seen_.world.is_lost_rule(name); });
  }

  /// Those that its rule may have had.
  [[nodiscard]] std::array<std::string, 2> names() const {
    return {rule_name(record_.key), old_rule_name(record_.key)};
  }

  /// The rule was written by a process that could not write the state any more: it knows of a newer incident.
  void learn_from(const k8s::DeviceTaintRule& rule) {
    const auto known = incidents_on(rule);
    if (known <= record_.incidents || changed_by_other(rule)) return;
    // It speaks of the card that was here before: by its identity, or by our own word that we remove it.
    if (record_.incidents == 0 && record_.removing) return;
    const auto identity = k8s::find(rule.meta.annotations, kIdentityAnnotation).value_or(std::string_view());
    if (!identity.empty() && !record_.identity.empty() && identity != record_.identity) return;
    record_.incidents = known;
    changed_ = true;
    if (record_.open) return;
    const auto since = k8s::find(rule.meta.annotations, kSinceAnnotation);
    record_.open = true;
    record_.since = parse_rfc3339(since.value_or(std::string_view())).value_or(seen_.now);
    record_.opened_at = seen_.now;
    record_.acknowledged = Acknowledged::No;
    record_.removing = false;
    record_.closed_at.reset();
    record_.probation_until.reset();
  }

  void look_at_node() {
    const auto name = seen_.world.node_of(record_.key);
    const auto* node = seen_.world.node(name);
    if (node == nullptr || (!record_.node_uid.empty() && node->meta.uid != record_.node_uid)) {
      // The node, and our taint with it, is gone; nobody has said anything by that.
      set(record_.node_tainted, false);
      set(record_.node_uid, std::string());
      if (node == nullptr) return;
    }
    const auto at = our_taint_on(*node);
    if (!at) {
      const bool by_nobody = record_.untainting || seen_.untainting.contains(name) || seen_.world.is_lost_taint(name);
      if (record_.node_tainted && record_.open && !by_nobody) acknowledge(Acknowledged::Removed);
      set(record_.untainting, false);
      set(record_.node_uid, std::string());
      return set(record_.node_tainted, false);
    }
    if (!record_.open || seen_.untainting.contains(name)) return;
    if (node->taints[*at] == node_taint()) {
      set(record_.node_tainted, true);
      set(record_.was_tainted, true);
      set(record_.node_uid, node->meta.uid);
    } else if (record_.node_tainted) {
      acknowledge(Acknowledged::Changed);
    }
  }

  void acknowledge_by_node() {
    if (!record_.open) return;
    const auto* node = seen_.world.node_under(record_.key);
    if (node == nullptr) return;
    const auto said = k8s::find(node->meta.annotations, kAcknowledgeAnnotation);
    if (!said) return;
    const auto until = operator_time(*said, seen_.now);
    if (until && record_.opened_at <= *until) acknowledge(Acknowledged::Annotated);
  }

  /// An operator vouches for the device: its penalty is paid. The first word counts.
  void acknowledge(Acknowledged how) {
    if (record_.acknowledged != Acknowledged::No) return;
    record_.acknowledged = how;
    record_.quarantined = false;
    record_.penalty = 0;
    changed_ = true;
  }

  DeviceRecord& record_;
  const SeenTaints& seen_;
  bool changed_ = false;
};

}  // namespace

bool look_at_taint(DeviceRecord& record, const SeenTaints& seen) { return Looker(record, seen).look(); }

}  // namespace dhc
