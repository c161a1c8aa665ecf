#include "tests/support/core/vendors.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/core/fixtures.h"

using namespace dhc;

namespace {

std::string policy_for(const std::string& match, const std::string& mode = "enforce") {
  return fmt::format(
      "apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {{name: p}}\n"
      "spec: {{mode: {}, match: {}, evict: {{}}}}\n",
      mode, match);
}

/// What is wrong with the policies, joined by line breaks; empty: nothing.
std::string faults(const std::string& yaml, bool all_words = false) {
  return fmt::format("{}", fmt::join(test::faults_of_policies(yaml, test::every_vendor(), all_words), "\n"));
}

/// The first YAML block of a page that is a policy_for.
std::string policy_in(const std::string& page) {
  const auto text = test::read_fixture("../../" + page);
  const auto begin = text.find("```yaml\napiVersion: device-health.io");
  REQUIRE(begin != std::string::npos);
  const auto first = text.find('\n', begin) + 1;
  return text.substr(first, text.find("```", first) - first);
}

/// The policies of the controller's own ConfigMap, with its commented examples.
std::string shipped_policies() {
  const auto text = test::read_fixture("../../manifests/controller/config/policies.yaml");
  const auto begin = text.find("\n# ---\n");
  REQUIRE(begin != std::string::npos);
  std::string uncommented = text.substr(0, begin + 1);
  for (std::size_t at = begin + 1; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    uncommented += text.substr(at + (text.substr(at, 2) == "# " ? 2 : 1), end - at - 1) + "\n";
    at = end + 1;
  }
  return uncommented;
}

}  // namespace

TEST_CASE("every vendor's words are there, with the place where each was read") {
  const auto vendors = test::every_vendor();
  CHECK(vendors.size() >= 16);
  for (const auto& vendor : vendors) {
    CAPTURE(vendor.file);
    CHECK((!vendor.resources.empty() || !vendor.drivers.empty()));
    CHECK((vendor.sources > 0 || vendor.not_read));
    CHECK((!vendor.words.empty() || vendor.not_read));
    // The device plugin API has no field for a message.
    for (const auto& word : vendor.words) CHECK((!vendor.drivers.empty() || word.message.empty()));
  }
}

TEST_CASE("every preset acts on every word that its vendor has for a bad device, and on no other") {
  std::size_t presets = 0;
  for (const auto& folder : std::filesystem::directory_iterator("manifests/presets")) {
    if (!folder.is_directory()) continue;
    const auto name = folder.path().filename().string();
    CAPTURE(name);
    CHECK(faults(test::read_fixture("../../manifests/presets/" + name + "/" + name + ".yaml"), true) == "");
    ++presets;
  }
  CHECK(presets >= 10);
}

TEST_CASE("every example can act on what the vendors that it names really say") {
  for (const auto& file : std::filesystem::directory_iterator("manifests/examples")) {
    if (file.path().extension() != ".yaml") continue;
    const auto name = file.path().filename().string();
    CAPTURE(name);
    CHECK(faults(test::read_fixture("../../manifests/examples/" + name)) == "");
  }
  CHECK(faults(policy_in("README.md")) == "");
  CHECK(faults(shipped_policies()) == "");
}

TEST_CASE("every vendor has a preset that names all its resources and drivers") {
  std::vector<DevicePolicy> policies;
  for (const auto& folder : std::filesystem::directory_iterator("manifests/presets")) {
    if (!folder.is_directory()) continue;
    const auto name = folder.path().filename().string();
    const std::array files = {
        ConfigFile{name, test::read_fixture("../../manifests/presets/" + name + "/" + name + ".yaml")}};
    const auto config = parse_config(files);
    REQUIRE_MESSAGE(config, name);
    CHECK_MESSAGE(config->warnings.empty(), name);
    policies.insert(policies.end(), config->policies.begin(), config->policies.end());
  }
  const auto named = [&](const std::string& name, std::vector<std::string> Match::* globs) {
    return std::ranges::any_of(policies, [&](const DevicePolicy& one) {
      return std::ranges::any_of(one.match.*globs, [&](const auto& glob) { return glob_matches(glob, name); });
    });
  };
  for (const auto& vendor : test::every_vendor()) {
    if (vendor.file == "dra-driver-cpu.json") continue;  // it can say Healthy alone
    for (const auto& name : vendor.resources) CHECK_MESSAGE(named(name, &Match::resources), name);
    for (const auto& name : vendor.drivers) CHECK_MESSAGE(named(name, &Match::drivers), name);
  }
}

TEST_CASE("a policy_for that passes its vendor's words by is found out") {
  // What was shipped once: the driver writes XID in capitals.
  CHECK(faults(policy_for("{drivers: [gpu.nvidia.com], message: 'Xid (48|79|95)'}")) ==
        "p: matches none of the 7 words for a bad gpu.nvidia.com");
  CHECK(faults(policy_for("{resources: [nvidia.com/gpu], message: '(?i)xid'}")) ==
        "p: matches none of the 1 words for a bad nvidia.com/gpu");
  // A list of numbers is enough for an example, not for a preset.
  const auto listed = policy_for("{drivers: [gpu.nvidia.com], message: '(?i)critical XID (48|74|79|95|119)|is lost'}");
  CHECK(faults(listed) == "");
  CHECK(faults(listed, true) == "p: passes by Unhealthy 'critical XID 94 reported by NVML' of gpu.nvidia.com");
  CHECK(faults(policy_for("{drivers: [gpu.nvidia.com], message: '(?i)\\bcritical XID [0-9]+\\b|\\bGPU is lost\\b'}"),
               true) == "");
}

TEST_CASE("a policy_for that takes a vendor's information for a fault, or misses its taint, is found out") {
  const std::string taken = R"({drivers: ["gpu.nvidia.com"], deviceTaints: [{key: gpu.nvidia.com/xid, effect: "*"}]})";
  CHECK(faults(policy_for(taken)) ==
        "p: acts on taint gpu.nvidia.com/xid=43:None of gpu.nvidia.com, which is no fault");
  CHECK(faults(policy_for(R"({drivers: ["gpu.nvidia.com"], deviceTaints: [{key: gpu.nvidia.com/xid}]})"), true) ==
        "p: passes by taint gpu.nvidia.com/gpu-lost:NoSchedule of gpu.nvidia.com");
  CHECK(faults(policy_for(R"({drivers: ["gpu.nvidia.com"], deviceTaints: [{key: nvidia.com/xid}]})")) ==
        "p: no driver gpu.nvidia.com has a taint nvidia.com/xid");
}

TEST_CASE("a policy_for for a name that nobody has, or for a vendor that reports nothing, is found out") {
  CHECK(faults(policy_for("{drivers: [gpu.nvidia.org]}")) == "p: no vendor that is known has the name gpu.nvidia.org");
  CHECK(faults(policy_for("{drivers: [gpu.amd.com]}")) == "p: enforces for gpu.amd.com, which never reports a fault");
  CHECK(faults(policy_for("{drivers: [gpu.amd.com]}", "observe")) == "");
}

TEST_CASE("a policy_for that enforces on Unknown is found out where Unknown is normal") {
  CHECK(faults(policy_for("{drivers: [gpu.intel.com], health: [Unhealthy, Unknown]}")) ==
        "p: acts on Unknown '' of gpu.intel.com");
  CHECK(faults(policy_for("{drivers: [gpu.intel.com], health: [Unhealthy, Unknown]}", "observe")) == "");
}
