#include "domain/incidents/news_state.h"

#include <cstddef>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/json_text.h"
#include "base/rfc3339.h"
#include "domain/incidents/state_reader.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

/// No more are read, whoever wrote them.
constexpr std::size_t kMostNewsRead = 1000;

std::string one_text(const News& news) {
  auto data = read_json<Json>(news.data);
  if (!data.is_object()) data = Json::object();
  return json_text({{"id", news.id},
                    {"type", news.type},
                    {"subject", news.subject},
                    {"at", format_rfc3339(news.at)},
                    {"data", std::move(data)}});
}

std::optional<News> read_one(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  StateReader reader(json);
  News news;
  reader.name("id", news.id);
  reader.name("type", news.type);
  reader.name("subject", news.subject);
  reader.time("at", news.at);
  const auto* data = reader.object("data");
  if (!reader.good() || data == nullptr || news.id.empty() || news.type.empty()) return std::nullopt;
  news.data = json_text(*data);
  return news;
}

}  // namespace

std::string news_state_text(const std::vector<RecentNews>& news) {
  std::vector<std::string> kept(news.size());
  std::size_t size = 2;
  for (const bool follows : {false, true}) {
    for (std::size_t i = news.size(); i-- > 0;) {
      if (news[i].follows != follows) continue;
      auto text = one_text(*news[i].news);
      if (size + text.size() + 1 > kNewsStateLimit) break;
      size += text.size() + 1;
      kept[i] = std::move(text);
    }
  }
  std::string all;
  for (const auto& text : kept) {
    if (text.empty()) continue;
    all += all.empty() ? '[' : ',';
    all += text;
  }
  return all.empty() ? all : all + "]";
}

std::vector<News> parse_news_state(std::string_view text) {
  std::vector<News> all;
  const Json json = read_json<Json>(text);
  if (!json.is_array()) return all;
  for (const auto& item : json) {
    if (all.size() == kMostNewsRead) break;
    if (auto news = read_one(item)) all.push_back(*std::move(news));
  }
  return all;
}

}  // namespace dhc
