#include "reconcilers/hand_over/objects.h"

#include <algorithm>
#include <expected>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/history/incident_id.h"
#include "domain/incidents/handed_state.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/hand_over/render.h"

namespace dhc::hand_over {

namespace {
using Phase = HandedObject::Phase;

std::string title_of(const HandedObject& object) { return dhc::title_of(object_of({}, object)); }

bool shares_incident(const HandedObject& object, const ObjectCase& wanted) {
  return std::ranges::any_of(object.incidents, [&](const auto& id) { return wanted.incidents.contains(id); });
}

class Objects {
 public:
  Objects(const PlanInput& input, Gates& gates, Speech& speech, Plan& planned)
      : input_(input),
        gates_(gates),
        speech_(speech),
        planned_(planned),
        known_(input.handed == nullptr ? none_ : *input.handed),
        cases_(find_object_cases(input)) {}

  void run() {
    // What is over makes room before anything is added.
    for (const auto& [slot, object] : known_.all()) {
      const auto wanted = cases_.find(slot);
      if (wanted == cases_.end() || !shares_incident(object, wanted->second)) end(slot, object);
    }
    for (const auto& [slot, wanted] : cases_) {
      const auto* object = known_.find(slot);
      if (object != nullptr && shares_incident(*object, wanted)) {
        follow(slot, *object, wanted);
      } else if (object == nullptr || object->phase == Phase::Over) {
        begin(slot, wanted, wanted.grounds.front());
      } else {
        speech_.say_each(
            wanted.node, wanted.grounds,
            Gates::held(fmt::format("{} of an incident before is taken back first", title_of(*object)), {}));
      }
    }
  }

 private:
  static const HandOverResource& rules_of(const ObjectCase& wanted) {
    return *wanted.grounds.front().policy->hand_over->resource;
  }

  void hold(const ObjectCase& wanted, const HoldReason& reason) {
    speech_.say_each(wanted.node, wanted.grounds, reason);
  }

  void say(const ObjectCase& wanted, Reason reason, const std::string& what) {
    for (const auto& ground : wanted.grounds) {
      speech_.say_each(wanted.node, {ground},
                       {.reason = reason, .message = fmt::format("{}: {}", ground.why, what), .until = {}});
    }
  }

  /// The ground of whose incident the object was made; where that has ended, the first.
  static const Ground& origin_of(const ObjectCase& wanted, const std::string& incident) {
    const auto found = std::ranges::find_if(
        wanted.grounds, [&](const Ground& ground) { return incident_id(*ground.record) == incident; });
    return found == wanted.grounds.end() ? wanted.grounds.front() : *found;
  }

  std::optional<HoldReason> not_now(const k8s::Node& node, const ObjectCase& wanted, const std::string& title) {
    return gates_.not_now(node, wanted.grounds, fmt::format("make {}", title));
  }

  /// The first ground whose incident nothing was made for; null: there is none.
  static const Ground* new_ground(const ObjectCase& wanted, const std::set<std::string>& known) {
    const auto found = std::ranges::find_if(
        wanted.grounds, [&](const Ground& ground) { return !known.contains(incident_id(*ground.record)); });
    return found == wanted.grounds.end() ? nullptr : &*found;
  }

  /// Nothing stands for this ground, nor is to.
  void begin(const std::string& slot, const ObjectCase& wanted, const Ground& first) {
    const auto* node = input_.world.node(wanted.node);
    if (node == nullptr) return;
    const auto& rules = rules_of(wanted);
    const auto& key = first.record->key;
    const auto incident = incident_id(*first.record);
    HandedObject object{.node = wanted.node,
                        .device = wanted.device,
                        .policy = first.policy->name,
                        .api_version = rules.api_version,
                        .kind = rules.kind,
                        .ns = rules.ns,
                        .name = {},
                        .incident = incident,
                        .incidents = {incident},
                        .keeps = rules.keeps,
                        .phase = Phase::Noted,
                        .at = std::chrono::floor<Seconds>(input_.now.wall),
                        .revision = 0,
                        .is_doubted = false};
    join(object, wanted);
    const auto fillings = fillings_of(first, wanted.node, incident);
    auto name = object_name(rules, fillings);
    if (!name) return hold(wanted, Gates::held(std::move(name.error()), {}));
    if (auto text = object_text(rules, fillings, *name); !text)
      return hold(wanted, Gates::held(std::move(text.error()), {}));
    object.name = *std::move(name);
    auto reason = not_now(*node, wanted, title_of(object));
    if (!reason) reason = gates_.full(*node, key);
    if (!reason) reason = no_room();
    if (reason) return hold(wanted, *reason);
    say(wanted, Reason::HandingOver, fmt::format("{} is written down, and made then", title_of(object)));
    gates_.begins(wanted.node);
    planned_.changes.insert_or_assign(slot, std::move(object));
  }

  /// In what is stored of them, with what this plan adds.
  bool has_room() const {
    if (!stored_) stored_ = handed_state_text(known_).size();
    return *stored_ + (planned_.changes.size() + 1) * kHandedObjectLimit <= kHandedStateLimit;
  }

  std::optional<HoldReason> no_room() const {
    const auto more = planned_.changes.size();
    if (known_.all().size() + more < HandedObjects::kMost && !is_full(known_) && has_room()) return std::nullopt;
    return Gates::held(
        fmt::format("{} objects are remembered, and no more are made: let some end", known_.all().size()), {});
  }

  /// True if it is new that it stands for them.
  static bool join(HandedObject& object, const ObjectCase& wanted) {
    const auto before = object.incidents.size();
    for (const auto& id : wanted.incidents) {
      if (object.incidents.size() < HandedObjects::kMostIncidents) object.incidents.insert(id);
    }
    return object.incidents.size() != before;
  }

  /// One that is remembered for these incidents.
  void follow(const std::string& slot, const HandedObject& known, const ObjectCase& wanted) {
    if (known.phase == Phase::Over) {
      if (const auto* fresh = new_ground(wanted, known.incidents)) return begin(slot, wanted, *fresh);
    }
    auto object = known;
    const auto& rules = rules_of(wanted);
    const bool is_changed = (has_room() && join(object, wanted)) || object.keeps != rules.keeps;
    object.keeps = rules.keeps;
    switch (known.phase) {
      case Phase::Noted:
        ask(slot, known, wanted);
        break;
      case Phase::Made:
        say(wanted, Reason::HandedOver,
            fmt::format("{} was made; it {} the incident ends or is acknowledged", title_of(known),
                        rules.keeps ? "is left when" : "stands until"));
        break;
      case Phase::Over:
        hold(wanted, Gates::held(fmt::format("{} was made for this incident and is over: none is made twice for one",
                                             title_of(known)),
                                 {}));
        break;
    }
    if (is_changed) planned_.changes.insert_or_assign(slot, std::move(object));
  }

  void ask(const std::string& slot, const HandedObject& object, const ObjectCase& wanted) {
    const auto* node = input_.world.node(wanted.node);
    if (node == nullptr) return;
    const auto& origin = origin_of(wanted, object.incident);
    auto text = object_text(rules_of(wanted), fillings_of(origin, wanted.node, object.incident), object.name);
    auto reason = not_now(*node, wanted, title_of(object));
    if (!reason && !is_saved(object))
      reason = HoldReason{.reason = Reason::HandingOver,
                          .message = fmt::format("{} is written down, and made then", title_of(object)),
                          .until = {}};
    if (!reason) reason = gates_.held_back(handed_object_key(slot), std::string(kSeenNoted));
    if (!reason) reason = gates_.full(*node, origin.record->key);
    if (!reason) reason = gates_.too_fast();
    if (!reason && !text) reason = Gates::held(text.error(), {});
    if (reason) return hold(wanted, *reason);
    say(wanted, Reason::HandingOver, fmt::format("{} is being made", title_of(object)));
    gates_.sends();
    gates_.begins(wanted.node);
    planned_.actions.emplace_back(MakeObject{.object = object_of(slot, object), .text = *std::move(text)});
  }

  bool is_saved(const HandedObject& object) const {
    return input_.saved_revision && *input_.saved_revision >= object.revision;
  }

  /// No ground asks for it any more.
  void end(const std::string& slot, const HandedObject& object) {
    if (object.phase == Phase::Over) {
      if (goes_on(object)) return;
      planned_.changes.insert_or_assign(slot, std::nullopt);
      return;
    }
    const auto* attempt = input_.requests.write(handed_object_key(slot));
    const bool is_on_its_way = attempt != nullptr && attempt->state == Attempt::State::Sending;
    const bool never_was = object.phase == Phase::Noted && !object.is_doubted && !is_on_its_way;
    if (object.keeps || never_was) {
      if (is_on_its_way) return;
      auto over = object;
      over.phase = Phase::Over;
      planned_.changes.insert_or_assign(slot, std::move(over));
      return;
    }
    const auto found = std::ranges::find(input_.policy.policies, object.policy, &DevicePolicy::name);
    const auto* policy = found == input_.policy.policies.end() ? nullptr : &*found;
    auto reason = gates_.not_ended(policy);
    if (!reason) reason = gates_.held_back(handed_object_key(slot), std::string(kSeenMade));
    // What comes after it was looked for would stay for ever.
    if (!reason && input_.now.mono < object.comes_by)
      reason = Gates::held("a request without an answer may still be carried out", object.comes_by);
    if (!reason) reason = gates_.too_fast();
    const bool stays = reason && reason->reason == Reason::WouldHandOver;
    speech_.say(object.node, object.device, object.policy, policy,
                {.reason = stays ? Reason::HandedOver : Reason::TakingBack,
                 .message = fmt::format("no device is a ground for {} any more: it is deleted{}", title_of(object),
                                        reason ? "; not yet: " + reason->message : std::string()),
                 .until = reason ? reason->until : std::nullopt},
                object.at);
    if (reason) return;
    gates_.sends();
    planned_.actions.emplace_back(RemoveObject{.object = object_of(slot, object)});
  }

  /// Whether one of its incidents does.
  bool goes_on(const HandedObject& object) {
    if (!open_) {
      open_.emplace();
      for (const auto& [key, record] : input_.incidents.records()) {
        if (record.is_open()) open_->insert(incident_id(record));
      }
    }
    return std::ranges::any_of(object.incidents, [&](const auto& id) { return open_->contains(id); });
  }

  const HandedObjects none_;
  const PlanInput& input_;
  Gates& gates_;
  Speech& speech_;
  Plan& planned_;
  const HandedObjects& known_;
  ObjectCases cases_;
  std::optional<std::set<std::string>> open_;
  mutable std::optional<std::size_t> stored_;  // bytes of the state that are taken
};

}  // namespace

void plan_objects(const PlanInput& input, Gates& gates, Speech& speech, Plan& planned) {
  Objects(input, gates, speech, planned).run();
}

}  // namespace dhc::hand_over
