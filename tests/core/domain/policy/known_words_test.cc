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

}  // namespace

TEST_CASE("a message that depends on upper and lower case is warned of where the driver is known") {
  CHECK(warnings("drivers: [gpu.nvidia.com], message: 'Xid (48|79|95)'") ==
        "f.yaml:5:47: warning: spec.match.message is case-sensitive and misses 'critical XID 48 reported by NVML', the "
        "words of gpu.nvidia.com; begin it with (?i)\n");
  CHECK(warnings("drivers: [gpu.nvidia.com], message: 'critical XID 79'") ==
        "f.yaml:5:47: warning: spec.match.message is case-sensitive; gpu.nvidia.com says 'critical XID 79 reported by "
        "NVML' today, and words change between releases; begin it with (?i)\n");
  CHECK(
      warnings("drivers: ['*.google.com'], message: 'file is missing'").contains("is case-sensitive; tpu.google.com"));
  // Every driver's devices are meant, known ones among them.
  CHECK(warnings("message: 'Xid (48|79|95)'").contains("misses 'critical XID 48 reported by NVML'"));
}

TEST_CASE("a message without regard to case, or for drivers that are not known, is not warned of") {
  CHECK(warnings("drivers: [gpu.nvidia.com], message: '(?i)\\bcritical XID [0-9]+\\b|\\bGPU is lost\\b'") == "");
  CHECK(warnings("drivers: [gpu.nvidia.com], message: '(?i)xid (48|79)'") == "");
  CHECK(warnings("drivers: [gpu.nvidia.com], message: '[Xx][Ii][Dd] 79'") == "");
  CHECK(warnings("drivers: [gpu.vendor.example], message: 'Xid (48|79|95)'") == "");
  CHECK(warnings("message: '(?i)double bit'") == "");
  CHECK(warnings("drivers: [gpu.nvidia.com]") == "");
}

TEST_CASE("a message that can match no word of the only drivers that are named is warned of") {
  CHECK(warnings("drivers: [gpu.nvidia.com], message: '(?i)double bit'") ==
        "f.yaml:5:47: warning: spec.match.message matches nothing that gpu.nvidia.com is known to say of a bad device; "
        "see docs/vendors.md for its words, or remove it: every device that its driver calls Unhealthy counts then\n");
  CHECK(warnings("drivers: [gpu.intel.com, gpu.amd.com], message: '(?i)temperature'") ==
        "f.yaml:5:59: warning: spec.match.message can match nothing: gpu.amd.com sends no message; remove it\n");
  CHECK(warnings("resources: [nvidia.com/gpu], message: '(?i)xid'") ==
        "f.yaml:5:49: warning: spec.match.message can match nothing: match names resources alone, and a device plugin "
        "sends no message; remove it\n");
  // Another driver beside it may say so.
  CHECK(warnings("drivers: [gpu.nvidia.com, gpu.vendor.example], message: '(?i)double bit'") == "");
  CHECK(warnings("drivers: ['gpu.*'], message: '(?i)double bit'") == "");
  CHECK(warnings("resources: [nvidia.com/gpu], message: '^$'") == "");
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
      for (const auto sentence : known->sentences) {
        const auto begin = sentence.substr(0, sentence.find('#'));
        CHECK(std::ranges::any_of(said, [&](const std::string& one) { return one.starts_with(begin); }));
      }
    }
  }
}
