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
    const auto before = record_.ours;
    acknowledge_by_node();
    if (record_.ours.node.stands() || needs_node_taint(seen_.world, record_.key)) look_at_node();
    if (record_.key.source == DeviceKey::Source::Dra) {
      look_at_rule();
      look_at_card();
    }
    return changed_ || !record_.ours.rule.reads_as(before.rule) || !record_.ours.node.reads_as(before.node);
  }

 private:
  void look_at_rule() {
    const auto& inventory = seen_.world.inventory();
    if (inventory.rules_api_version().empty()) return;  // nobody removed anything: the kind is not served just now
    auto& mark = record_.ours.rule;
    const auto* rule = inventory.rule_named_for(record_.key);
    // Never seen as we make it: another's, or ours that an admission webhook has changed before it was stored. Nobody
    // has said anything by it.
    if (rule != nullptr && !is_known(*rule) && !is_as_we_make_it(*rule)) rule = nullptr;
    if (rule == nullptr || rule->meta.deletion) {
      const bool is_unseen = !mark.stands() && rule_went_away();
      if (is_lost()) {
        mark.take(MarkEvent::Lost);
      } else {
        note_gone(mark, is_unseen);
      }
      return;
    }
    mark.see(rule->meta.uid);
    if (!std::exchange(record_.ours.knows_rule, true)) learn_from(*rule);
    // A rule on its way out says nothing about the incident that began since.
    auto* facts = record_.incident.facts();
    if (facts == nullptr || mark.is_leaving()) return;
    note_tainted(*facts);
    if (changed_by_other(*rule)) {
      if (!record_.ours.rule_doubt.explains_change(seen_.now.mono)) acknowledge_it(Acknowledged::Changed);
      return;
    }
    if (is_acknowledged(*rule)) acknowledge_it(Acknowledged::Annotated);
  }

  /// The rule is the one that was seen before; 0.1.0 remembered only that there is one.
  [[nodiscard]] bool is_known(const k8s::DeviceTaintRule& rule) const {
    const auto& mark = record_.ours.rule;
    return mark.stands() && (mark.uid().empty() || mark.uid() == rule.meta.uid);
  }

  /// Rules for the other devices of its card that somebody else has deleted, or has acknowledged.
  void look_at_card() {
    const auto& inventory = seen_.world.inventory();
    if (!record_.is_open() || (seen_.removed_rules.empty() && inventory.card_rules().empty())) return;
    // Those that were made for its sake may stand while nobody knows what is on its card.
    for (const auto* rule : inventory.rules_for_card_of(record_.key)) look_at_card_rule(*rule);
    for (const auto& other : inventory.others_on_card(record_.key)) {
      for (const auto* rule : inventory.named_rules_for(other)) look_at_card_rule(*rule);
      if (seen_.removed_rules.empty()) continue;
      const auto name = card_rule_name(other);
      if (!went_away(seen_.removed_rules, name) || seen_.card_removals.contains(name)) continue;
      if (inventory.rule_named(name) == nullptr && !may_be_earlier()) let_go(other.device);
    }
  }

  /// One that we take away already says nothing about the incident that began since.
  void look_at_card_rule(const k8s::DeviceTaintRule& rule) {
    if (!is_acknowledged(rule) || rule.meta.deletion || seen_.card_removals.contains(rule.meta.name)) return;
    if (same_card_as(rule) && !changed_by_other(rule)) let_go(device_of(rule)->device);
  }

  void let_go(const std::string& device) { changed_ = record_.ours.let_go.insert(device).second || changed_; }

  void note_tainted(IncidentFacts& facts) {
    changed_ = changed_ || !facts.was_tainted;
    facts.was_tainted = true;
  }

  /// Seen to go in this incident, by us or while another led; that of an incident before says nothing.
  [[nodiscard]] bool went_away(const std::map<std::string, WallTime>& removed, const std::string& name) const {
    const auto* facts = record_.incident.facts();
    const auto found = removed.find(name);
    return facts != nullptr && found != removed.end() && found->second >= facts->opened_at;
  }

  [[nodiscard]] bool rule_went_away() const {
    if (seen_.removed_rules.empty()) return false;  // most turns: no names are made
    return std::ranges::any_of(names(), [&](const auto& name) { return went_away(seen_.removed_rules, name); });
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
    auto& past = record_.past;
    if (known <= past.count || changed_by_other(rule)) return;
    // It speaks of the card that was here before: by its identity, or by our own word that we remove it.
    if (past.count == 0 && record_.ours.rule.is_leaving()) return;
    const auto identity = k8s::find(rule.meta.annotations, kIdentityAnnotation).value_or(std::string_view());
    if (!identity.empty() && !record_.card.value.empty() && identity != record_.card.value) return;
    past.count = known;
    changed_ = true;
    if (record_.is_open()) return;
    const auto since = k8s::find(rule.meta.annotations, kSinceAnnotation);
    const auto bad_since = parse_rfc3339(since.value_or(std::string_view())).value_or(seen_.now.wall);
    record_.incident.begin({.since = bad_since,
                            .opened_at = seen_.now.wall,
                            .taint = {},
                            .called_bad_at = bad_since,
                            .reporter = {},
                            .evidence = {}},
                           past.is_lemon);
    record_.ours.rule.take(MarkEvent::Kept);
  }

  void look_at_node() {
    const auto name = seen_.world.node_of(record_.key);
    const auto* node = seen_.world.node(name);
    auto& mark = record_.ours.node;
    // The node, and our taint with it, is gone; nobody has said anything by that.
    if (node == nullptr || (!mark.uid().empty() && node->meta.uid != mark.uid())) mark.take(MarkEvent::Lost);
    if (node == nullptr) return;
    const auto at = our_taint_on(*node);
    if (!at) {
      if (seen_.untainting.contains(name) || seen_.world.is_lost_taint(name)) {
        mark.take(MarkEvent::Lost);
        return;
      }
      const bool is_unseen = !mark.stands() && went_away(seen_.removed_taints, name);
      note_gone(mark, is_unseen);
      return;
    }
    auto* facts = record_.incident.facts();
    if (facts == nullptr || seen_.untainting.contains(name)) return;
    if (node->taints[*at] == node_taint()) {
      mark.see(node->meta.uid);
      note_tainted(*facts);
    } else if (mark.stands()) {
      acknowledge_it(Acknowledged::Changed);
    }
  }

  void note_gone(OurMark& mark, bool is_unseen) {
    const bool by_operator = mark.take(MarkEvent::Gone) || is_unseen;
    if (by_operator && !may_be_earlier()) acknowledge_it(Acknowledged::Removed);
  }

  /// Whether what went may have gone by a request of the process before us.
  [[nodiscard]] bool may_be_earlier() const { return seen_.now.mono < record_.ours.earlier_removal_by; }

  void acknowledge_by_node() {
    if (looked_at_until(record_, seen_.world, seen_.now.wall)) acknowledge_it(Acknowledged::Annotated);
  }

  /// The first word counts.
  void acknowledge_it(Acknowledged how) { changed_ = acknowledge(record_, how) || changed_; }

  DeviceRecord& record_;
  const SeenTaints& seen_;
  bool changed_ = false;
};

}  // namespace

std::optional<WallTime> looked_at_until(const DeviceRecord& record, const World& world, WallTime now) {
  const auto* facts = record.incident.facts();
  const auto* node = facts == nullptr ? nullptr : world.node_under(record.key);
  const auto said = node == nullptr ? std::nullopt : k8s::find(node->meta.annotations, kAcknowledgeAnnotation);
  if (!said) return std::nullopt;
  const auto until = operator_time(*said, now);
  return until && facts->opened_at <= *until ? std::optional(*until) : std::nullopt;
}

bool look_at_taint(DeviceRecord& record, const SeenTaints& seen) { return Looker(record, seen).look(); }

}  // namespace dhc
