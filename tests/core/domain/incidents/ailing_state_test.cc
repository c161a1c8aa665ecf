#include "domain/incidents/ailing_state.h"

#include <chrono>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace dhc::test {

namespace {

AilingPod ailing_pod(int number, WallTime seen) {
  return {.ns = "default",
          .uid = fmt::format("uid-{}", number),
          .job_uid = "uid-job",
          .devices = {{.key = DeviceKey::dra("gpu.example.com", "node-a", "gpu-0"), .word = {}, .said = "Xid 79"}},
          .seen = seen};
}

const WallTime kSeen = std::chrono::sys_days(std::chrono::year(2026) / 11 / 25);

}  // namespace

TEST_CASE("What is written of ailing pods is read back") {
  auto tainted = ailing_pod(1, kSeen);
  tainted.devices.front().source = SignalSource::Taint;
  auto other = ailing_pod(2, kSeen);
  other.ended = true;
  other.devices.front() = {
      .key = DeviceKey::plugin("node-b", "example.com/gpu", "GPU-1"), .word = "PermanentlyUnhealthy", .said = {}};
  const std::vector<AilingPod> pods = {ailing_pod(0, kSeen), tainted, other};
  CHECK(parse_ailing_state(ailing_state_text(pods)) == pods);
  CHECK(ailing_state_text({}).empty());
}

TEST_CASE("Of more ailing pods than fit those seen last are kept") {
  std::vector<AilingPod> pods;
  for (int i = 0; i < 2000; ++i) pods.push_back(ailing_pod(i, kSeen + Seconds(i)));
  const auto text = ailing_state_text(pods);
  CHECK(text.size() <= kAilingStateLimit);
  const auto read = parse_ailing_state(text);
  CHECK(read.size() > 200);
  CHECK(read.front() == pods.back());
  CHECK(read.back().seen == kSeen + Seconds(2000 - static_cast<int>(read.size())));
}

TEST_CASE("Of ailing pods only what we wrote is read, and long words are cut") {
  for (const auto* text : {"", "{}", "[", "[1]", R"([{"namespace":"a"}])",
                           R"([{"namespace":"a","uid":"b","job":"c","seen":"yesterday","devices":[]}])",
                           R"([{"namespace":"a","uid":"b","job":"c","seen":"2026-11-25T00:00:00Z","devices":[{}]}])",
                           R"([{"namespace":"a","uid":7,"job":"c","seen":"2026-11-25T00:00:00Z","devices":
                              [{"source":"dra","scope":"d","place":"p","device":"x"}]}])"}) {
    CAPTURE(text);
    CHECK(parse_ailing_state(text).empty());
  }
  auto loud = ailing_pod(0, kSeen);
  loud.devices.front().said = std::string(5000, 'x') + "\n";
  const auto read = parse_ailing_state(ailing_state_text({loud}));
  REQUIRE(read.size() == 1);
  CHECK(read.front().devices.front().said == std::string(300, 'x'));
}

}  // namespace dhc::test
