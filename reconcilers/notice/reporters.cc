#include "reconcilers/notice/reporters.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/findings/match_device.h"

namespace dhc::notice {

namespace {

constexpr std::size_t kMostWords = 5;

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

std::string silence_text(const PlanInput& input, const Speaker& reporter, const SpeakerSight& sight) {
  const auto held =
      fmt::format("pods have held devices of it since {}, {} now", format_rfc3339(sight.since.wall), sight.held);
  // **Source:** KEP-4680: a registered plugin always has a health, and the kubelet writes it where the gate is on.
  if (sight.reported == 0) {
    return fmt::format(
        "{}, and no pod's status says anything about one (allocatedResourcesStatus): is the feature gate "
        "ResourceHealthStatus on for API server and kubelets (Kubernetes 1.36 or later)? Without it no report arrives",
        held);
  }
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
    if (sight.held == 0 || has_spoken(input, reporter, sight) || is_taken_out(input, reporter)) continue;
    if (!is_asked_for(input, reporter, sight)) continue;
    const MonoTime at = sight.since.mono + kSpeakerGrace;
    if (input.now.mono < at) {
      wake.note(at);
      continue;
    }
    if (found.verdicts.size() == kMostReporters) break;
    found.verdicts.push_back({.subject = subject_of_reporter(reporter),
                              .device = {},
                              .policy = {},
                              .reason = Reason::ReporterNeverSpoke,
                              .message = silence_text(input, reporter, sight),
                              .since = sight.since.wall,
                              .next_at = std::nullopt});
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
