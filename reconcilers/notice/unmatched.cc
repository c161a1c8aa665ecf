#include "reconcilers/notice/unmatched.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "domain/findings/match_device.h"

namespace dhc::notice {

namespace {

constexpr std::size_t kMostPattern = 120;
constexpr std::size_t kMostSaid = 200;

/// One pod on one device that is Unhealthy, or that its driver has tainted.
struct Case {
  const PodRecord& record;
  const HeldDevice& held_device;
  const DeviceState& state;
  std::optional<TaintWord> taint = {};  ///< Of one that is not Unhealthy.
  [[nodiscard]] WallTime since() const { return taint ? taint->since.wall : state.unhealthy_since->wall; }
};

/// The policy that comes nearest, and where it fails.
struct Nearest {
  const DevicePolicy* policy = nullptr;
  MatchPart part = MatchPart::Device;
};

std::optional<MatchPart> selectors_fail(const Match& match, const World& world, const Case& one) {
  if (!one.held_device.ambiguous) return selector_misfit(match, world, one.record.pod, one.held_device.key);
  std::optional<MatchPart> first;
  for (const auto& candidate : one.held_device.candidates) {
    const auto part = selector_misfit(match, world, one.record.pod, candidate);
    if (part && (!first || *part < *first)) first = part;
  }
  return first;
}

bool has_claim_condition(const Match& match, const World& world, const HeldDevice& held_device) {
  if (match.claim_conditions.empty() || held_device.claim.empty() || held_device.ambiguous) return false;
  const auto* claim = world.claim(held_device.claim);
  return claim != nullptr && find_claim_condition(match.claim_conditions, *claim, held_device.key) != nullptr;
}

bool has_taint(const Match& match, const PlanInput& input, const HeldDevice& held_device) {
  if (held_device.ambiguous) return false;
  const auto kept = input.world.kept_taint(held_device.key);
  return taint_word(match, input.world, held_device.key, input.now, kept ? &*kept : nullptr).has_value();
}

std::optional<MatchPart> misfit(const Match& match, const PlanInput& input, const Case& one) {
  if (const auto part = selectors_fail(match, input.world, one)) return part;
  if (one.taint) return has_taint(match, input, one.held_device) ? std::nullopt : std::optional(MatchPart::Health);
  const auto part = unhealthy_misfit(match, one.state.message);
  const bool by_driver =
      has_claim_condition(match, input.world, one.held_device) || has_taint(match, input, one.held_device);
  return part && by_driver ? std::nullopt : part;
}

/// None: some policy matches, or means the device and is off.
std::optional<Nearest> nearest_policy(const PlanInput& input, const Case& one) {
  Nearest nearest;
  for (const auto& policy : input.policy.policies) {
    const auto part = misfit(policy.match, input, one);
    if (!part) return std::nullopt;
    // Nobody names each taint of what is to be left alone.
    if (one.taint && policy.mode == Mode::Off && *part == MatchPart::Health) return std::nullopt;
    if (nearest.policy == nullptr || *part > nearest.part) nearest = {.policy = &policy, .part = *part};
  }
  return nearest;
}

std::string requirement_text(const LabelSelector::Requirement& requirement) {
  switch (requirement.op) {
    case LabelSelector::Operator::In:
      return fmt::format("{} in ({})", requirement.key, fmt::join(requirement.values, ", "));
    case LabelSelector::Operator::NotIn:
      return fmt::format("{} notin ({})", requirement.key, fmt::join(requirement.values, ", "));
    case LabelSelector::Operator::Exists:
      return requirement.key;
    case LabelSelector::Operator::DoesNotExist:
      return "!" + requirement.key;
  }
  return requirement.key;
}

std::string selector_text(std::string_view key, const LabelSelector& selector, const k8s::StringMap* labels,
                          const std::string& whose) {
  static constexpr k8s::StringMap kNone{};
  const auto& known = labels == nullptr ? kNone : *labels;
  const auto* unmet = selector.first_unmet(known);
  if (unmet == nullptr) return fmt::format("its {} does not fit {}", key, whose);
  const auto value = k8s::find(known, unmet->key);
  return fmt::format("its {} asks for {}, and {} has {}", key, printable_cut(requirement_text(*unmet), kMostSaid),
                     whose, value ? fmt::format("{}={}", unmet->key, *value) : "no such label");
}

std::string health_text(const Match& match) {
  std::vector<std::string_view> words(match.health_words.begin(), match.health_words.end());
  for (const auto health : match.health) words.push_back(to_string(health));
  std::ranges::sort(words);
  return fmt::format("its health is [{}]", fmt::join(words, ", "));
}

std::string message_text(const Match& match, const Case& one) {
  const bool plugin = one.held_device.key.source == DeviceKey::Source::Plugin;
  return fmt::format("its message /{}/ does not match \"{}\"{}", printable_cut(match.message->text(), kMostPattern),
                     printable_cut(one.state.message, kMostSaid), plugin ? ": a device plugin sends no message" : "");
}

/// Where the nearest policy fails, to be read after `but`.
std::string failure_text(const PlanInput& input, const Case& one, const Nearest& nearest) {
  const auto& match = nearest.policy->match;
  const auto& pod = one.record.pod;
  const auto* ns = input.world.namespace_of(pod.meta.ns);
  const auto* node = input.world.node(pod.node_name);
  std::string no_condition = match.claim_conditions.empty() ? "" : ", and no claim condition that it names is set";
  if (!match.device_taints.empty()) no_condition += ", and no taint that it names is in the device's slice";
  switch (nearest.part) {
    case MatchPart::Device:
      break;
    case MatchPart::Namespace:
      return selector_text("namespaceSelector", match.namespaces, ns == nullptr ? nullptr : &ns->labels,
                           "Namespace " + pod.meta.ns);
    case MatchPart::Pod:
      return selector_text("podSelector", match.pods, &pod.meta.labels, "the pod");
    case MatchPart::Node:
      return selector_text("nodeSelector", match.nodes, node == nullptr ? nullptr : &node->meta.labels,
                           "node " + pod.node_name);
    case MatchPart::Health:
      if (one.taint) return match.device_taints.empty() ? "it has no deviceTaints" : "its deviceTaints do not name it";
      return health_text(match).append(no_condition);
    case MatchPart::Message:
      return message_text(match, one).append(no_condition);
  }
  return {};
}

Verdict verdict_of(const PlanInput& input, const Case& one, const Nearest& nearest) {
  const auto& key = one.held_device.key;
  const bool named = nearest.policy != nullptr && nearest.part != MatchPart::Device;
  std::string why = one.taint ? fmt::format("the driver has tainted this device ({}), and no policy matches it",
                                            printable_cut(one.taint->said, kMostSaid))
                              : "no policy matches this Unhealthy device";
  if (named) {
    why += fmt::format("; the nearest is {}, but {}", nearest.policy->name, failure_text(input, one, nearest));
  } else if (nearest.policy == nullptr) {
    why += ": there is no policy";
  } else {
    why += fmt::format(": none names the {} {}", key.source == DeviceKey::Source::Plugin ? "resource" : "driver",
                       key.scope);
  }
  return {.subject = subject_of(one.record.pod),
          .device = to_string(key),
          .policy = named ? nearest.policy->name : std::string(),
          .reason = Reason::NoPolicy,
          .message = std::move(why),
          .since = one.since(),
          .next_at = std::nullopt};
}

class Collection {
 public:
  explicit Collection(const PlanInput& input) : input_(input) {
    for (const auto& affected : input.affected_pods) matched_.insert(affected.held_device);
  }

  void look_at(const DeviceKey& key, const DeviceState& state, const std::string& uid) {
    const auto* record = input_.world.pod(uid);
    const bool is_unhealthy = state.unhealthy_since && state.is_witness(uid);
    auto taint = is_unhealthy ? std::nullopt : standing_taint(input_.world, key, input_.now);
    const auto* held_device = is_unhealthy || taint ? find_live_hold(record, key) : nullptr;
    if (held_device == nullptr || matched_.contains(held_device) || (taint && held_device->ambiguous)) return;
    const Case one{.record = *record, .held_device = *held_device, .state = state, .taint = std::move(taint)};
    const auto nearest = nearest_policy(input_, one);
    if (!nearest) return;
    if (found_.size() < kMostUnmatched) {
      found_.push_back(verdict_of(input_, one, *nearest));
    } else {
      ++rest_;
      rest_since_ = std::min(rest_since_, one.since());
    }
  }

  std::vector<Verdict> done() {
    if (rest_ == 0) return std::move(found_);
    found_.push_back({.subject = {.kind = "Configuration", .ns = {}, .name = "configuration", .uid = {}},
                      .device = {},
                      .policy = {},
                      .reason = Reason::NoPolicy,
                      .message = fmt::format("{} more pods hold a bad device that no policy matches; {} are shown",
                                             rest_, kMostUnmatched),
                      .since = rest_since_,
                      .next_at = std::nullopt});
    return std::move(found_);
  }

 private:
  const PlanInput& input_;
  std::unordered_set<const HeldDevice*> matched_;
  std::vector<Verdict> found_;
  std::size_t rest_ = 0;
  WallTime rest_since_ = WallTime::max();
};

/// Every device that may be bad.
std::set<DeviceKey> suspects(const World& world) {
  auto found = world.tracker().not_healthy();
  const auto tainted = world.driver_taints().devices();
  found.insert(tainted.begin(), tainted.end());
  return found;
}

}  // namespace

std::vector<Verdict> find_unmatched(const PlanInput& input) {
  const auto all = input.unmatched == nullptr ? suspects(input.world) : std::set<DeviceKey>();
  const auto& devices = input.unmatched == nullptr ? all : *input.unmatched;
  if (devices.empty()) return {};
  Collection collection(input);
  for (const auto& key : devices) {
    const auto* state = input.world.tracker().find(key);
    if (state == nullptr) continue;
    for (const auto& uid : state->holders) collection.look_at(key, *state, uid);
  }
  return collection.done();
}

}  // namespace dhc::notice
