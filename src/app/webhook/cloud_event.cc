#include "app/webhook/cloud_event.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/rfc3339.h"

namespace dhc {

std::string webhook_source(std::string_view given, std::string_view own_namespace) {
  if (!given.empty()) return std::string(given);
  std::string source = "/device-health-controller";
  if (!own_namespace.empty()) source.append("/").append(own_namespace);
  return source;
}

std::string cloud_event(const News& news, std::string_view source) {
  auto text = json_text({{"specversion", "1.0"},
                         {"id", news.id},
                         {"source", source},
                         {"type", news.type},
                         {"subject", news.subject},
                         {"time", format_rfc3339(news.at)},
                         {"datacontenttype", "application/json"}});
  // It is JSON already.
  text.pop_back();
  return text + ",\"data\":" + news.data + "}";
}

}  // namespace dhc
