#include "domain/policy/known_words.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "domain/policy/config.h"
#include "domain/policy/config_text.h"
#include "tests/support/core/vendors.h"

using namespace dhc;

namespace {

/// The warnings about a policy with this match, one a line; the match stands in line 5.
std::string warnings(const std::string& match) {
  const std::array files = {ConfigFile{
      "f.yaml", fmt::format("apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {{name: p}}\n"
                            "spec:\n  match: {{{}}}\n",
                            match)}};
  const auto config = parse_config(files);
  REQUIRE(config);
  std::string all;
  for (const auto& warning : config->warnings) all += format_warning(warning) + "\n";
  return all;
}

/// The same of one that names the driver's taints, of which there is a warning of its own.
std::string warnings_of(const std::string& match) {
  return warnings(match + ", deviceTaints: [{key: gpu.nvidia.com/*}]");
}

}  // namespace

TEST_CASE("a message that depends on upper and lower case is warned of where the driver is known") {
  CHECK(warnings_of("drivers: [gpu.nvidia.com], message: 'Xid (48|79|95)'") ==
        "f.yaml:5:47: warning: spec.match.message is case-sensitive and misses 'critical XID 48 reported by NVML', the "
        "words of gpu.nvidia.com; begin it with (?i)\n");
  CHECK(warnings_of("drivers: [gpu.nvidia.com], message: 'critical XID 79'") ==
        "f.yaml:5:47: warning: spec.match.message is case-sensitive; gpu.nvidia.com says 'critical XID 79 reported by "
        "NVML' today, and words change between releases; begin it with (?i)\n");
  CHECK(
      warnings("drivers: ['*.google.com'], message: 'file is missing'").contains("is case-sensitive; tpu.google.com"));
  // Every driver's devices are meant, known ones among them.
  CHECK(warnings("message: 'Xid (48|79|95)'").contains("misses 'critical XID 48 reported by NVML'"));
}

TEST_CASE("a message without regard to case, or for drivers that are not known, is not warned of") {
  CHECK(warnings_of("drivers: [gpu.nvidia.com], message: '(?i)\\bcritical XID [0-9]+\\b|\\bGPU is lost\\b'") == "");
  CHECK(warnings_of("drivers: [gpu.nvidia.com], message: '(?i)xid (48|79)'") == "");
  CHECK(warnings_of("drivers: [gpu.nvidia.com], message: '[Xx][Ii][Dd] 79'") == "");
  CHECK(warnings("drivers: [gpu.vendor.example], message: 'Xid (48|79|95)'") == "");
  CHECK(warnings("message: '(?i)double bit'") == "");
  CHECK(warnings_of("drivers: [gpu.nvidia.com]") == "");
}

TEST_CASE("a message that can match no word of the only drivers that are named is warned of") {
  CHECK(warnings_of("drivers: [gpu.nvidia.com], message: '(?i)double bit'") ==
        "f.yaml:5:47: warning: spec.match.message matches nothing that gpu.nvidia.com is known to say of a bad device; "
        "see docs/vendors.md for its words, or remove it: every device that its driver calls Unhealthy counts then\n");
  CHECK(warnings("drivers: [gpu.intel.com, gpu.amd.com], message: '(?i)temperature'") ==
        "f.yaml:5:59: warning: spec.match.message can match nothing: gpu.amd.com sends no message; remove it\n");
  CHECK(warnings("resources: [nvidia.com/gpu], message: '(?i)xid'") ==
        "f.yaml:5:49: warning: spec.match.message can match nothing: match names resources alone, and a device plugin "
        "sends no message; remove it\n");
  // Another driver beside it may say so.
  CHECK(warnings_of("drivers: [gpu.nvidia.com, gpu.vendor.example], message: '(?i)double bit'") == "");
  CHECK(warnings("drivers: ['gpu.*'], message: '(?i)double bit'") == "");
  CHECK(warnings("resources: [nvidia.com/gpu], message: '^$'") == "");
}

TEST_CASE("a policy for a driver that says by taints what it says in no other way is warned of if it names none") {
  const std::string words =
      "spec.match names no taint of gpu.nvidia.com: some of its releases, or all, say that a "
      "device is bad in no other way; write deviceTaints: [{key: gpu.nvidia.com/xid}, {key: "
      "gpu.nvidia.com/gpu-lost}]; see docs/vendors.md\n";
  CHECK(warnings("drivers: [gpu.nvidia.com]") == "f.yaml:5:20: warning: " + words);
  CHECK(warnings("drivers: [gpu.nvidia.com], deviceTaints: [{key: gpu.nvidia.com/unmonitored}]") ==
        "f.yaml:5:52: warning: " + words);
  CHECK(warnings("drivers: [gpu.nvidia.com], deviceTaints: [{key: gpu.nvidia.com/xid}]") == "");
  CHECK(warnings("drivers: [gpu.nvidia.com], deviceTaints: [{key: gpu.nvidia.com/*}]") == "");
  CHECK(warnings("drivers: ['*.nvidia.com']") == "");
  CHECK(warnings("drivers: [compute-domain.nvidia.com]") == "");
}

TEST_CASE("a policy that takes a driver out is not asked for its taints") {
  const std::array files = {
      ConfigFile{"f.yaml",
                 "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: p}\n"
                 "spec: {mode: \"off\", match: {drivers: [gpu.nvidia.com]}}\n"}};
  const auto config = parse_config(files);
  REQUIRE(config);
  CHECK(config->warnings.empty());
}

TEST_CASE("a policy that would evict whatever nobody reports on is warned of, unless it only observes") {
  const auto warned = [](std::string_view mode, std::string_view health, std::string_view evict) {
    const std::array files = {ConfigFile{
        "f.yaml", fmt::format("apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {{name: p}}\n"
                              "spec:\n  mode: {}\n  match: {{health: [{}]}}\n{}",
                              mode, health, evict)}};
    const auto config = parse_config(files);
    REQUIRE(config);
    return config->warnings.empty() ? std::string() : format_warning(config->warnings.front());
  };
  CHECK(warned("enforce", "Unhealthy, Unknown", "  evict: {}\n") ==
        "f.yaml:6:19: warning: spec.match.health names Unknown and the policy evicts: a device is Unknown whenever "
        "nobody reports on it, so each one of a driver that has no health reports (docs/vendors.md) counts as bad; "
        "leave Unknown out, or write mode: observe");
  CHECK(warned("observe", "Unhealthy, Unknown", "  evict: {}\n") == "");
  CHECK(warned("enforce", "Unhealthy, Unknown", "  taint: {}\n") == "");
  CHECK(warned("enforce", "Unhealthy", "  evict: {}\n") == "");
}

TEST_CASE("the table of known drivers and the words of the vendors are the same") {
  for (const auto& vendor : test::every_vendor()) {
    for (const auto& name : vendor.drivers) {
      CAPTURE(name);
      const auto known = std::ranges::find(known_drivers(), name, &KnownDriver::name);
      // dra.cpu says Healthy alone, and the words of Neuron's driver have not been read.
      CHECK((known == known_drivers().end()) == (name == "dra.cpu" || vendor.not_read));
      if (known == known_drivers().end()) continue;
      const auto likely = likely_messages(*known);
      std::set<std::string> said;
      for (const auto& word : vendor.words) {
        if (word.health != k8s::Health::Unhealthy || word.message.empty()) continue;
        said.insert(word.message);
        CHECK(std::ranges::find(likely, word.message) != likely.end());
      }
      for (const auto key : known->taints) {
        CHECK(std::ranges::any_of(vendor.taints, [&](const test::VendorTaint& one) {
          return one.is_fault && one.taint.key == key && one.taint.effect == "NoSchedule";
        }));
      }
      for (const auto sentence : known->sentences) {
        const auto begin = sentence.substr(0, sentence.find('#'));
        CHECK(std::ranges::any_of(said, [&](const std::string& one) { return one.starts_with(begin); }));
      }
    }
  }
}
