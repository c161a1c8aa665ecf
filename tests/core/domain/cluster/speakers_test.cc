#include "domain/cluster/speakers.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace dhc {

namespace {

const Speaker kPlugin{.source = DeviceKey::Source::Plugin, .scope = "example.com/gpu"};

std::vector<Heard> held(std::int64_t reported) {
  return {{.who = kPlugin, .held = 1, .reported = reported, .has_spoken = false}};
}

}  // namespace

TEST_CASE("each turn looks at the nodes whose kubelets say nothing of any device there, and at no others") {
  Speakers speakers;
  const Now now;
  speakers.add("node-a", held(1), now);
  speakers.add("node-b", held(0), now);
  const auto& sight = speakers.all().at(kPlugin);
  CHECK(sight.unheard == std::set<SharedText>{"node-b"});
  speakers.add("node-a", held(0), now);  // of one pod it does
  CHECK(sight.unheard == std::set<SharedText>{"node-b"});
  speakers.remove("node-a", held(1));
  CHECK(sight.unheard == std::set<SharedText>{"node-a", "node-b"});
  speakers.add("node-b", held(1), now);
  CHECK(sight.unheard == std::set<SharedText>{"node-a"});
  speakers.remove("node-b", held(0));
  speakers.remove("node-b", held(1));
  CHECK(sight.nodes.size() == 1);
  CHECK(sight.unheard == std::set<SharedText>{"node-a"});
}

TEST_CASE("that a device was made ready is no word about its health, and any other condition is") {
  struct Case {
    std::string type;
    std::string status;
    bool speaks;
  };
  for (const auto& one : std::vector<Case>{{"Ready", "True", false},
                                           {"NetworkReady", "True", false},
                                           {"Ready", "False", true},
                                           {"Ready", "Unknown", true},
                                           {"Degraded", "False", true},
                                           {"Healthy", "True", true}}) {
    CAPTURE(one.type);
    CAPTURE(one.status);
    k8s::ResourceClaim claim;
    claim.devices = {{.driver = "gpu.example.com",
                      .pool = "node-a",
                      .device = "gpu-0",
                      .conditions = {{.type = one.type, .status = one.status}}}};
    Speakers speakers;
    speakers.note(claim);
    CHECK((speakers.first_words() == 1) == one.speaks);
  }
}

}  // namespace dhc
