#include "app/webhook/cloud_event.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace dhc;

TEST_CASE("news is a CloudEvent with its data") {
  const News news{.id = "00ff",
                  .type = "io.device-health.pod.evicted",
                  .subject = "Pod/ml/train-0",
                  .at = WallTime(Seconds(60)),
                  .data = R"({"pod":{"name":"train-0"}})"};
  const auto text = cloud_event(news, "/clusters/east");
  CHECK(nlohmann::json::parse(text) == nlohmann::json::parse(R"({
          "specversion": "1.0", "id": "00ff", "source": "/clusters/east", "type": "io.device-health.pod.evicted",
          "subject": "Pod/ml/train-0", "time": "1970-01-01T00:01:00Z", "datacontenttype": "application/json",
          "data": {"pod": {"name": "train-0"}}})"));
  CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("the source is what the configuration says, or our namespace's") {
  CHECK(webhook_source("/clusters/east", "dhc") == "/clusters/east");
  CHECK(webhook_source("", "dhc") == "/device-health-controller/dhc");
  CHECK(webhook_source("", "") == "/device-health-controller");
}
