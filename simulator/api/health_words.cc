#include "simulator/api/health_words.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/answer.h"

namespace dhc::sim {
namespace {

void check_container(const Store& store, const Json& container, const std::string& at, Json& causes) {
  std::size_t entry_index = 0;
  for (const auto& entry : list(container, {"allocatedResourcesStatus"})) {
    const auto entry_at = fmt::format("{}.allocatedResourcesStatus[{}]", at, entry_index++);
    std::size_t index = 0;
    for (const auto& resource : list(entry, {"resources"})) {
      const auto word = text(resource, {"health"});
      const auto field = fmt::format("{}.resources[{}].health", entry_at, index++);
      if (word.empty() || store.knows_health_word(word)) continue;
      causes.push_back(cause(
          "FieldValueNotSupported",
          fmt::format("Unsupported value: \"{}\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\"", word),
          field));
    }
  }
}

}  // namespace

Json faults_of_status(const Store& store, const Json& pod) {
  Json causes = Json::array();
  for (const std::string of : {"containerStatuses", "initContainerStatuses"}) {
    std::size_t index = 0;
    for (const auto& container : list(pod, {"status", of}))
      check_container(store, container, fmt::format("status.{}[{}]", of, index++), causes);
  }
  return causes;
}

}  // namespace dhc::sim
