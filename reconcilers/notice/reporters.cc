#include "reconcilers/notice/reporters.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/release_numbers.h"
#include "base/rfc3339.h"
#include "domain/findings/match_device.h"

namespace dhc::notice {

namespace {

constexpr std::size_t kMostWords = 5;
constexpr std::size_t kLongestVersion = 64;

Subject subject_of_reporter(const Speaker& reporter) {
  return {.kind = reporter.source == DeviceKey::Source::Dra ? "Driver" : "Resource",
          .ns = {},
          .name = reporter.scope,
          .uid = {}};
}

DeviceKey any_device_of(const Speaker& reporter) {
  return {.source = reporter.source, .scope = reporter.scope, .place = {}, .device = {}};
}

/// What only requests show may be no device at all: it is told where a policy is waiting for its reports.
bool is_asked_for(const PlanInput& input, const Speaker& reporter, const SpeakerSight& sight) {
  if (reporter.source == DeviceKey::Source::Dra || sight.reported > 0) return true;
  return std::ranges::any_of(input.policy.policies,
                             [&](const DevicePolicy& one) { return names_device(one.match, any_device_of(reporter)); });
}

/// The first policy that names its devices is off: nobody wants to hear of it.
bool is_taken_out(const PlanInput& input, const Speaker& reporter) {
  const auto key = any_device_of(reporter);
  const auto first = std::ranges::find_if(input.policy.policies,
                                          [&](const DevicePolicy& one) { return names_device(one.match, key); });
  return first != input.policy.policies.end() && effective_mode(&*first, input.policy) == Mode::Off;
}

/// In this process, or before it: then an incident is remembered.
bool has_spoken(const PlanInput& input, const Speaker& reporter, const SpeakerSight& sight) {
  const bool is_dra = reporter.source == DeviceKey::Source::Dra;
  if (sight.has_spoken || (is_dra && input.world.driver_taints().has_spoken(reporter.scope))) return true;
  return std::ranges::any_of(input.incidents.records(), [&](const auto& entry) {
    return entry.first.source == reporter.source && entry.first.scope == reporter.scope;
  });
}

bool names_taints_of(const Policy& policy, const DeviceKey& key) {
  return std::ranges::any_of(policy.policies, [&](const DevicePolicy& one) {
    return effective_mode(&one, policy) != Mode::Off && !one.match.device_taints.empty() &&
           names_device(one.match, key);
  });
}

std::string held_text(const Moment& since, std::int64_t held) {
  return fmt::format("pods have held devices of it since {}, {} now", format_rfc3339(since.wall), held);
}

/// Nodes whose kubelets report no device's health by default, and of one reporter's devices on them none.
struct OldKubelets {
  std::size_t nodes = 0;
  std::int64_t held = 0;        ///< The reporter's devices on their pods.
  std::optional<Moment> since;  ///< Since when some have been held on one of them; none: there is none.
  std::string example;          ///< One of them, with its version.
};

/// **Source:** KEP-4680: the gate ResourceHealthStatus is beta, and on, from 1.36; alpha, and off, from 1.31.
bool is_old(const k8s::Node& node) {
  constexpr std::array<int, 3> kOnByDefault = {1, 36, 0};
  const auto numbers = release_numbers(node.kubelet_version);
  return numbers && *numbers < kOnByDefault;
}

/// Those on which pods have held devices of the reporter for a while; `wake` learns of the others.
OldKubelets old_kubelets(const PlanInput& input, const SpeakerSight& sight, Wake& wake) {
  OldKubelets found;
  for (const auto& name : sight.unheard) {
    const auto& there = sight.nodes.at(name);
    const auto* node = input.world.node(name);
    if (node == nullptr || !is_old(*node)) continue;
    if (const MonoTime at = there.since.mono + kSpeakerGrace; input.now.mono < at) {
      wake.note(at);
      continue;
    }
    if (found.nodes++ == 0) {
      found.example = fmt::format("{} ({})", name, printable_cut(node->kubelet_version, kLongestVersion));
    }
    found.held += there.held;
    if (!found.since || there.since.mono < found.since->mono) found.since = there.since;
  }
  return found;
}

/// What follows the number of nodes.
std::string below_text(const OldKubelets& old) {
  return fmt::format(
      "{} a kubelet below 1.36, {}{}: update {}, or turn the feature gate ResourceHealthStatus on in the API server "
      "and the kubelets",
      old.nodes == 1 ? "has" : "have", old.example, old.nodes == 1 ? "" : " among them",
      old.nodes == 1 ? "the kubelet" : "the kubelets");
}

/// Where no kubelet says anything of any of its devices.
std::string unreported_text(const SpeakerSight& sight, const OldKubelets& old) {
  const auto nothing = fmt::format("{}, and no pod's status says anything about one (allocatedResourcesStatus)",
                                   held_text(sight.since, sight.held));
  if (old.nodes > 0)
    return fmt::format("{}: {} of their {} nodes {}", nothing, old.nodes, sight.nodes.size(), below_text(old));
  // **Source:** KEP-4680: a registered plugin always has a health, and the kubelet writes it where the gate is on.
  return fmt::format(
      "{}, and no kubelet of their nodes is known to be below 1.36: is the feature gate ResourceHealthStatus off in "
      "the API server or the kubelets, or does its driver or plugin not register with them? See docs/vendors.md",
      nothing);
}

/// Where kubelets elsewhere do.
std::string partly_unreported_text(const OldKubelets& old) {
  return fmt::format("{}, and no pod's status there says anything about one (allocatedResourcesStatus): {} {} {}",
                     held_text(*old.since, old.held), old.nodes, old.nodes == 1 ? "node" : "nodes", below_text(old));
}

std::string silence_text(const PlanInput& input, const Speaker& reporter, const SpeakerSight& sight) {
  const auto held = held_text(sight.since, sight.held);
  if (reporter.source == DeviceKey::Source::Plugin) {
    return fmt::format("{}, and the kubelet has reported each as Unknown since: is its plugin registered?", held);
  }
  if (names_taints_of(input.policy, any_device_of(reporter))) {
    return fmt::format(
        "{}, each is Unknown, and it has put none of the taints that match.deviceTaints asks for. Check that its "
        "health "
        "monitoring is on, see docs/vendors.md: off, it never taints; on, it taints only what is bad, and nothing is "
        "wrong",
        held);
  }
  return fmt::format(
      "{}, and it has reported nothing about the health of any: each is Unknown, no claim condition, no taint. Turn "
      "its "
      "health service on, see docs/vendors.md; if it only taints what is bad, name its taints in match.deviceTaints",
      held);
}

bool is_named_for(const PlanInput& input, const DeviceKey& key, const OtherWord& word, const std::string& uid) {
  const auto* record = input.world.pod(uid);
  if (record == nullptr) return true;  // nobody is left to tell
  return std::ranges::any_of(policies_for(input.world, input.policy, record->pod, key), [&](const auto* policy) {
    return std::ranges::find(policy->match.health_words, word.word) != policy->match.health_words.end();
  });
}

/// The words of one reporter's devices.
struct WordCounts {
  std::map<std::string, std::int64_t> count;
  WallTime since = WallTime::max();
};

std::string words_text(const WordCounts& words) {
  std::string text;
  std::size_t told = 0;
  for (const auto& [word, count] : words.count) {
    if (told++ == kMostWords) break;
    text += fmt::format("{}{} ({} {})", text.empty() ? "" : ", ", word, count, count == 1 ? "device" : "devices");
  }
  if (words.count.size() > kMostWords) text += fmt::format(" and {} more words", words.count.size() - kMostWords);
  return fmt::format(
      "the kubelet reports {}, which is neither Healthy, Unhealthy nor Unknown: treated as Unknown; a policy may name "
      "the "
      "word in match.health",
      text);
}

}  // namespace

Planned<Verdict> find_silent_reporters(const PlanInput& input) {
  Planned<Verdict> found;
  Wake wake;
  for (const auto& [reporter, sight] : input.world.speakers().all()) {
    if (sight.held == 0 || is_taken_out(input, reporter) || !is_asked_for(input, reporter, sight)) continue;
    const auto say = [&](Reason reason, std::string message, const Moment& since) {
      if (found.verdicts.size() == kMostReporters) return;
      found.verdicts.push_back({.subject = subject_of_reporter(reporter),
                                .device = {},
                                .policy = {},
                                .reason = reason,
                                .message = std::move(message),
                                .since = since.wall,
                                .next_at = std::nullopt});
    };
    const bool is_silent = !has_spoken(input, reporter, sight);
    // One that speaks past the kubelets, by taints or conditions, needs none of them.
    if (sight.reported == 0 && !is_silent) continue;
    const auto old = old_kubelets(input, sight, wake);
    if (sight.reported > 0 && old.nodes > 0) say(Reason::HealthNotReported, partly_unreported_text(old), *old.since);
    if (!is_silent) continue;
    const MonoTime at = sight.since.mono + kSpeakerGrace;
    if (input.now.mono < at) {
      wake.note(at);
    } else if (sight.reported == 0) {
      say(Reason::HealthNotReported, unreported_text(sight, old), sight.since);
    } else {
      say(Reason::ReporterNeverSpoke, silence_text(input, reporter, sight), sight.since);
    }
  }
  found.wake_at = wake.at();
  return found;
}

std::vector<Verdict> find_other_words(const PlanInput& input) {
  std::map<Speaker, WordCounts> by_reporter;
  for (const auto& [key, word] : input.world.tracker().other_words()) {
    const auto is_named = [&](const std::string& uid) { return is_named_for(input, key, word, uid); };
    if (word.silent_since || std::ranges::all_of(word.witnesses, is_named)) continue;
    auto& words = by_reporter[{.source = key.source, .scope = key.scope}];
    ++words.count[word.word];
    words.since = std::min(words.since, word.since.wall);
  }
  std::vector<Verdict> found;
  for (const auto& [reporter, words] : by_reporter) {
    if (found.size() == kMostReporters) break;
    found.push_back({.subject = subject_of_reporter(reporter),
                     .device = {},
                     .policy = {},
                     .reason = Reason::HealthWordUnknown,
                     .message = words_text(words),
                     .since = words.since,
                     .next_at = std::nullopt});
  }
  return found;
}

}  // namespace dhc::notice
