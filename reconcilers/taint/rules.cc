#include "reconcilers/taint/rules.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/contract/our_taint.h"
#include "domain/findings/enforcement.h"
#include "domain/incidents/card_memory.h"
#include "domain/limits/write_keys.h"
#include "reconcilers/shared/card_taints.h"
#include "reconcilers/taint/cards.h"

namespace dhc::taint {

namespace {

/// The number that stands before " pod" in the API server's sentence, for people to compare with ours: nothing is
/// decided on it.
std::optional<std::string> pods_in(std::string_view sentence) {
  const auto end = sentence.find(" pod");
  if (end == std::string_view::npos) return std::nullopt;
  auto begin = end;
  while (begin > 0 && sentence[begin - 1] >= '0' && sentence[begin - 1] <= '9') --begin;
  if (begin == end) return std::nullopt;
  return std::string(sentence.substr(begin, end - begin));
}

class RulePlanner {
 public:
  RulePlanner(const PlanInput& input, Speech& speech, const DeviceRecord& record)
      : input_(input),
        speech_(speech),
        record_(record),
        policy_(policy_of(record, input.policy)),
        mode_(effective_mode(policy_, input.policy)),
        rule_(input.world.inventory().rule_named_for(record.key)),
        name_(rule_ == nullptr ? rule_name(record.key) : rule_->meta.name.str()) {}

  void run() {
    say_standing();
    if (rule_ == nullptr) {
      if (wanted()) make();
      return;
    }
    if (rule_->meta.deletion) return say(Reason::Untainting, "the DeviceTaintRule is being deleted");
    if (came_out_otherwise()) return remove();
    if (const auto changed = changed_by_other(*rule_)) return say_changed(*changed);
    if (!wanted() || record_.ours.rule.is_leaving()) return remove();
    rule_->taint.effect == "None" ? advance() : keep();
  }

 private:
  /// A policy that has gone does not take the taint along; one that stays and no longer asks for it does.
  [[nodiscard]] bool wanted() const {
    if (!record_.is_open() || record_.is_acknowledged()) return false;
    if (is_long_absent(record_, input_.world, input_.now.wall)) return false;
    if (policy_ == nullptr) return rule_ != nullptr;
    return makes_rules(*policy_);
  }

  void say_standing() {
    if (record_.is_open() && record_.is_acknowledged()) {
      speech_.say(record_, until_recovered(record_, input_, Reason::Acknowledged,
                                           "an operator vouches for the device: not tainted again in this incident"));
    }
    if (record_.is_quarantined() && policy_ != nullptr && policy_->taint) {
      speech_.ask_again(record_);  // its penalty sinks all the time
      say(Reason::Quarantined,
          fmt::format(
              "{} incidents, penalty {:.2f}{}: held until an operator writes the annotation {} on the rule or node",
              record_.past.count, penalty_of(record_.past, policy_->recover, input_.now.wall),
              with_card_words(input_.incidents, record_, input_.world, input_.policy, input_.now.wall),
              kAcknowledgeAnnotation));
    }
    if (!record_.is_open() && record_.incident.was_tainted() && rule_ == nullptr) speech_.say_ended(record_);
  }

  /// The server has stored it otherwise than we sent it: it is no operator's word, and ours to take back.
  [[nodiscard]] bool came_out_otherwise() const {
    return input_.requests.altered_rules().find(rule_->meta.name, rule_->meta.uid) != nullptr;
  }

  /// As long as it stands, whether a rule is wanted or not: nobody but a person takes it away.
  void say_changed(const std::string& changed) {
    const auto& name = rule_->meta.name;
    const bool is_known = record_.ours.rule.stands();
    say(Reason::ChangedByOther,
        is_known ? fmt::format("DeviceTaintRule {}: {}; it is left as it is", name, changed)
                 : fmt::format("a DeviceTaintRule {} stands that is not as we make it ({}); it is left as it is", name,
                               changed));
  }

  void make() {
    const auto& inventory = input_.world.inventory();
    if (const auto other = inventory.unschedulable_because(record_.key, name_)) {
      return say(Reason::TaintedByOther, "no taint of ours is needed: " + *other);
    }
    if (mode_ == Mode::Off) return;
    if (mode_ != Mode::Enforce || observed_because()) {
      return speech_.say(
          record_, until_recovered(record_, input_, Reason::WouldTaint,
                                   observed_because().value_or("an enforcing policy would make a DeviceTaintRule")));
    }
    if (auto hold = speech_.not_now(record_)) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.held_back(write_key(), {})) return speech_.say(record_, std::move(*hold));
    if (auto hold = just_made()) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.comes_out_otherwise()) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.takes_from_caps(record_)) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.takes_taint()) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.takes_trial()) return speech_.say(record_, std::move(*hold));
    const bool staged = policy_->taint->device == TaintRules::Device::Staged && rule_has_status();
    apply(staged ? "None" : "NoSchedule");
    say(Reason::Tainting,
        staged ? "a DeviceTaintRule with effect None is being created" : "a DeviceTaintRule is being created");
  }

  /// Why a policy that enforces begins nothing here. What it has begun it keeps, and takes away again.
  [[nodiscard]] std::optional<std::string> observed_because() const {
    if (mode_ != Mode::Enforce || policy_ == nullptr) return std::nullopt;
    const auto miss = enforce_miss(*policy_, input_.world, record_.key);
    return miss ? std::optional(words_of(*miss, *policy_)) : std::nullopt;
  }

  /// Whether rules surely have the effect None and a status. **Source:** resource.k8s.io/v1alpha3 of 1.33 and 1.34 has
  /// neither, that of 1.35 both; the version's name does not tell them apart.
  [[nodiscard]] bool rule_has_status() const {
    return !input_.world.inventory().rules_api_version().ends_with("v1alpha3");
  }

  /// A rule that we have made, or may have, and that the World has never shown: an operator may have deleted it
  /// meanwhile, so that it is not made again before the watch must have been renewed.
  [[nodiscard]] std::optional<HoldReason> just_made() const {
    const auto* attempt = input_.requests.write(write_key());
    if (attempt == nullptr || !attempt->resource_version.empty()) return std::nullopt;
    if (attempt->at < mono_of(record_.incident.facts()->opened_at, input_.now))
      return std::nullopt;  // of an earlier incident
    const MonoTime until = attempt->at + kUnseenRule;
    if (attempt->state == Attempt::State::Sending || !may_stand(*attempt) || input_.now.mono >= until)
      return std::nullopt;
    return HoldReason{
        .reason = Reason::Tainting, .message = "the rule was asked for, and is not seen yet", .until = until};
  }

  /// By our own clock where we made the rule; the server's may be another.
  [[nodiscard]] MonoTime staged_at() const {
    const auto* attempt = input_.requests.write(write_key());
    if (attempt != nullptr) return attempt->at;
    const MonoTime at =
        rule_->meta.creation ? mono_of(input_.world.ours(*rule_->meta.creation), input_.now) : input_.now.mono;
    // A time that is still ahead counts as now, and with each plan anew.
    if (at >= input_.now.mono) speech_.ask_again(record_);
    return at;
  }

  /// A staged rule: what it would do is known, or has been waited for long enough.
  void advance() {
    const auto& progress = rule_->progress;
    const bool said = progress && progress->observed_generation >= rule_->generation;
    const MonoTime until = staged_at() + kStagePatience;
    const bool still_staged = policy_ != nullptr && policy_->taint->device == TaintRules::Device::Staged;
    if (still_staged && !said && input_.now.mono < until) {
      return speech_.say(record_, {.reason = Reason::StagedTaint,
                                   .message = "effect None until the API server reports its effect, at most 30 s",
                                   .until = until});
    }
    if (mode_ != Mode::Enforce || observed_because()) {
      return say(Reason::WouldTaint, "the DeviceTaintRule has effect None; " +
                                         observed_because().value_or("an enforcing policy would set NoSchedule"));
    }
    if (auto hold = speech_.not_now(record_)) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.held_back(write_key(), rule_->meta.resource_version)) {
      return speech_.say(record_, std::move(*hold));
    }
    apply("NoSchedule");
    say(Reason::Tainting, "the effect becomes NoSchedule" + what_it_says());
  }

  void keep() {
    const auto incidents = k8s::find(rule_->meta.annotations, kIncidentsAnnotation);
    const bool is_current =
        incidents == std::string_view(std::to_string(record_.past.count)) && is_described() && !names_card_before();
    // The rule is what remains if the state is lost: it learns of each new incident, unless another field manager owns
    // that.
    const auto* attempt = input_.requests.write(write_key());
    const bool contested =
        attempt != nullptr && attempt->state == Attempt::State::Failed && attempt->error.kind == ErrorKind::Contested;
    if (contested) {
      say(Reason::ChangedByOther, attempt->error.message);
    } else if (!is_current && mode_ == Mode::Enforce) {
      auto hold = speech_.held_back(write_key(), rule_->meta.resource_version);
      if (!hold) apply(rule_->taint.effect);
      if (hold && hold->reason != Reason::Tainting) speech_.say(record_, std::move(*hold));
    }
    speech_.say(record_,
                until_recovered(record_, input_, Reason::Tainted,
                                fmt::format("DeviceTaintRule {} keeps new pods off{}; {} hold it", rule_->meta.name,
                                            off_its_card(), pods(holders_of(input_, record_.key))) +
                                    what_it_says() + unheeded()));
  }

  [[nodiscard]] std::string off_its_card() const {
    const auto others = tainted_with(input_, record_.key);
    const auto open = open_on_card(input_, record_.key).size();
    std::string words = others == 0   ? std::string()
                        : others == 1 ? ", and another rule off one more device of its card"
                                      : fmt::format(", and other rules off {} more devices of its card", others);
    if (open > 0) words += fmt::format(" ({} of its card not yet)", open);
    return words;
  }

  /// A rule of 0.1.0 names no node and no device that a person can read: it gets the labels of today's once. One of
  /// ours that has lost them is left alone, because somebody has taken them away.
  [[nodiscard]] bool is_described() const {
    return rule_->meta.name != old_rule_name(record_.key) || k8s::find(rule_->meta.labels, kDeviceLabel).has_value();
  }

  [[nodiscard]] static std::string pods(std::size_t count) {
    return count == 1 ? "1 pod" : fmt::format("{} pods", count);
  }

  /// It has the card by a name that it no longer bears: whoever has nothing but the rule would take it for another one.
  [[nodiscard]] bool names_card_before() const {
    const auto value = k8s::find(rule_->meta.annotations, kIdentityAnnotation).value_or(std::string_view());
    const auto attribute =
        k8s::find(rule_->meta.annotations, kIdentityAttributeAnnotation).value_or(std::string_view());
    const auto& card = record_.card;
    return !value.empty() && !card.value.empty() && (value != card.value || attribute != card.attribute);
  }

  /// **Source:** seen on 1.37.1: with the gate DRADeviceTaintRules off in scheduler and controller manager the kind is
  /// served, and nobody heeds it; elsewhere the rule's condition comes within a second.
  [[nodiscard]] std::string unheeded() const {
    if (!rule_has_status() || rule_->progress) return {};
    const MonoTime until = staged_at() + kStagePatience;
    if (input_.now.mono < until) {
      speech_.wake(record_, until);
      return {};
    }
    return "; nobody has looked at the rule: is the feature gate DRADeviceTaintRules on in every component?";
  }

  /// The API server's own account of a staged rule, beside ours.
  [[nodiscard]] std::string what_it_says() const {
    const auto& progress = rule_->progress;
    if (!progress || progress->reason != "NoEffect") return {};
    const auto ours = std::to_string(holders_of(input_, record_.key));
    const auto theirs = pods_in(progress->message);
    return fmt::format("; the API server says: {}{}", progress->message,
                       theirs && *theirs != ours ? fmt::format(" (we count {} that hold it)", ours) : "");
  }

  [[nodiscard]] std::string why_removed() const {
    if (came_out_otherwise()) return input_.requests.altered_rules().why();
    if (!record_.is_open()) return record_.incident.end() == nullptr ? std::string() : record_.incident.end()->why;
    if (record_.is_acknowledged()) return "an operator acknowledged it";
    if (is_long_absent(record_, input_.world, input_.now.wall)) return "nobody publishes or holds the device any more";
    return record_.ours.rule.is_leaving() ? "the rule of the incident before" : "the policy no longer taints";
  }

  void remove() {
    const auto why = why_removed();
    if (mode_ != Mode::Enforce) return say(Reason::WouldUntaint, why);
    if (auto hold = speech_.unsaved(record_)) return speech_.say(record_, std::move(*hold));
    if (auto hold = speech_.held_back(write_key(), rule_->meta.resource_version)) {
      if (hold->reason == Reason::Tainting) hold->reason = Reason::Untainting;
      return speech_.say(record_, std::move(*hold));
    }
    speech_.act(DeleteRule{.name = rule_->meta.name,
                           .api_version = input_.world.inventory().rules_api_version(),
                           .uid = rule_->meta.uid,
                           .resource_version = rule_->meta.resource_version,
                           .key = record_.key,
                           .device = to_string(record_.key),
                           .policy = record_.past.policy});
    say(Reason::Untainting, why);
  }

  void apply(std::string effect) {
    speech_.act(ApplyRule{.name = name_,
                          .api_version = input_.world.inventory().rules_api_version(),
                          .uid = rule_ == nullptr ? std::string() : rule_->meta.uid.str(),
                          .resource_version = rule_ == nullptr ? std::string() : rule_->meta.resource_version.str(),
                          .driver = record_.key.scope,
                          .pool = record_.key.place,
                          .device_name = record_.key.device,
                          .node = input_.world.node_of(record_.key),
                          .said = said(),
                          .effect = std::move(effect),
                          .policy = record_.past.policy,
                          .identity = record_.card.value,
                          .identity_attribute = record_.card.attribute,
                          .since = record_.incident.facts()->since,
                          .incidents = record_.past.count,
                          .device = to_string(record_.key)});
  }

  /// The driver's words as somebody who holds the device has them; else those that the rule has already.
  [[nodiscard]] std::string said() const {
    for (const auto* affected : input_.in_focus) {
      if (affected->key == record_.key && !affected->said.empty()) return affected->said;
    }
    if (rule_ == nullptr) return {};
    return std::string(k8s::find(rule_->meta.annotations, kSaidAnnotation).value_or(std::string_view()));
  }

  [[nodiscard]] std::string write_key() const { return rule_write_key(name_); }

  void say(Reason reason, std::string message) {
    speech_.say(record_, {.reason = reason, .message = std::move(message), .until = {}});
  }

  // A silent watch is renewed after 90 s.
  static constexpr Millis kUnseenRule = std::chrono::minutes(2);
  const PlanInput& input_;
  Speech& speech_;
  const DeviceRecord& record_;
  const DevicePolicy* policy_;
  Mode mode_;
  const k8s::DeviceTaintRule* rule_;
  std::string name_;
};

}  // namespace

void plan_rules(const PlanInput& input, Speech& speech) {
  for_each_record(input, [&](const DeviceKey& key, const DeviceRecord& record) {
    if (!needs_node_taint(input.world, key)) RulePlanner(input, speech, record).run();
  });
}

}  // namespace dhc::taint
