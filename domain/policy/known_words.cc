#include "domain/policy/known_words.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dhc {

namespace {

constexpr std::array<std::string_view, 2> kNvidia = {"critical XID # reported by NVML", "GPU is lost"};
constexpr std::array<std::string_view, 1> kTpu = {"TPU device file is missing"};
constexpr std::array<std::string_view, 6> kExample = {
    "Critical: gpu-0 temperature at #°C (exceeds safe threshold of 85°C)",
    "gpu-0 temperature: #°C (warning threshold exceeded, safe limit is 85°C)",
    "ECC error count exceeded threshold on gpu-0 (# errors in last hour)",
    "Driver communication timeout on gpu-0 (attempt #)",
    "gpu-0 initiating recovery sequence (diagnostics in progress)",
    "gpu-0 recovery in progress (running self-tests)"};
constexpr std::array<std::string_view, 2> kNvidiaTaints = {"gpu.nvidia.com/xid", "gpu.nvidia.com/gpu-lost"};
constexpr std::array<KnownDriver, 9> kDrivers = {{{"dra.net", {}},
                                                  {"gaudi.intel.com", {}},
                                                  {"gpu.amd.com", {}},
                                                  {"gpu.dra-example-driver.sigs.k8s.io", kExample},
                                                  {"gpu.example.com", kExample},
                                                  {"gpu.intel.com", {}},
                                                  {"gpu.nvidia.com", kNvidia, kNvidiaTaints},
                                                  {"sriovnetwork.k8snetworkplumbingwg.io", {}},
                                                  {"tpu.google.com", kTpu}}};

/// Xids end below 200 today; more would only cost time, of which the whole of a configuration has a second.
constexpr int kNumbers = 200;

std::string in_case(std::string text, bool upper) {
  for (char& c : text) {
    if (upper ? (c >= 'a' && c <= 'z') : (c >= 'A' && c <= 'Z')) c = static_cast<char>(c ^ 0x20);
  }
  return text;
}

/// Whether devices of any driver are meant.
bool is_of_any(const Match& match) { return match.drivers.empty() && match.resources.empty(); }

std::vector<const KnownDriver*> drivers_of(const Match& match) {
  std::vector<const KnownDriver*> found;
  for (const auto& driver : kDrivers) {
    const auto named = [&](const std::string& glob) { return glob_matches(glob, driver.name); };
    if (is_of_any(match) || std::ranges::any_of(match.drivers, named)) found.push_back(&driver);
  }
  return found;
}

bool all_known(const Match& match) {
  return std::ranges::all_of(match.drivers, [](const std::string& name) {
    return std::ranges::find(kDrivers, name, &KnownDriver::name) != kDrivers.end();
  });
}

/// What the expression would match if it did not tell `a` from `A`, and does not; nothing if that makes no difference.
std::optional<PatternDoubt> doubt_about_case(const MessagePattern& pattern, const KnownDriver& driver,
                                             const std::vector<std::string>& messages) {
  const auto folded = MessagePattern::compile("(?i)" + pattern.text());
  if (!folded) return std::nullopt;
  for (const auto& message : messages) {
    const std::array<std::string, 3> cases = {message, in_case(message, false), in_case(message, true)};
    if (std::ranges::none_of(cases,
                             [&](const std::string& text) { return folded->matches(text) && !pattern.matches(text); }))
      continue;
    return PatternDoubt{
        .what = pattern.matches(message)
                    ? fmt::format("is case-sensitive; {} says '{}' today, and words change between releases",
                                  driver.name, message)
                    : fmt::format("is case-sensitive and misses '{}', the words of {}", message, driver.name),
        .remedy = "begin it with (?i)"};
  }
  return std::nullopt;
}

}  // namespace

std::span<const KnownDriver> known_drivers() { return kDrivers; }

std::vector<std::string> likely_messages(const KnownDriver& driver) {
  std::vector<std::string> messages;
  for (const std::string_view sentence : driver.sentences) {
    const auto place = sentence.find('#');
    if (place == std::string_view::npos) {
      messages.emplace_back(sentence);
      continue;
    }
    for (int number = 1; number < kNumbers; ++number) {
      messages.push_back(fmt::format("{}{}{}", sentence.substr(0, place), number, sentence.substr(place + 1)));
    }
  }
  return messages;
}

std::optional<PatternDoubt> doubt_about(const MessagePattern& pattern, const Match& match) {
  if (!match.resources.empty() && match.drivers.empty() && !pattern.matches("")) {
    return PatternDoubt{.what = "can match nothing: match names resources alone, and a device plugin sends no message",
                        .remedy = "remove it"};
  }
  const auto drivers = drivers_of(match);
  bool says_something = false;
  bool matches_something = false;
  for (const auto* driver : drivers) {
    const auto messages = likely_messages(*driver);
    if (auto doubt = doubt_about_case(pattern, *driver, messages)) return doubt;
    says_something = says_something || !messages.empty();
    matches_something = matches_something || std::ranges::any_of(messages, [&](const std::string& message) {
                          return pattern.matches(message);
                        });
  }
  if (drivers.empty() || is_of_any(match) || !all_known(match) || matches_something || pattern.matches(""))
    return std::nullopt;
  if (!says_something) {
    return PatternDoubt{.what = fmt::format("can match nothing: {} sends no message", drivers.front()->name),
                        .remedy = "remove it"};
  }
  return PatternDoubt{
      .what = fmt::format("matches nothing that {} is known to say of a bad device", drivers.front()->name),
      .remedy =
          "see docs/vendors.md for its words, or remove it: every device that its driver calls Unhealthy counts then"};
}

std::optional<PatternDoubt> doubt_about_taints(const Match& match) {
  for (const auto& driver : kDrivers) {
    if (driver.taints.empty() || std::ranges::find(match.drivers, driver.name) == match.drivers.end()) continue;
    std::vector<std::string> missing;
    for (const auto key : driver.taints) {
      const k8s::Taint taint{.key = std::string(key), .value = "1", .effect = "NoSchedule"};
      if (!fits_any(match.device_taints, taint)) missing.push_back(fmt::format("{{key: {}}}", key));
    }
    if (missing.size() < driver.taints.size()) continue;
    return PatternDoubt{
        .what = fmt::format("names no taint of {}: some of its releases, or all, say that a device is "
                            "bad in no other way",
                            driver.name),
        .remedy = fmt::format("write deviceTaints: [{}]; see docs/vendors.md", fmt::join(missing, ", "))};
  }
  return std::nullopt;
}

}  // namespace dhc
