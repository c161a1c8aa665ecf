#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "domain/incidents/news.h"

namespace dhc {

/// The name of the section of the state that remembers what the webhook has told within the hour: the next leader tells
/// it again. Versions that do not know it keep it as it is.
inline constexpr std::string_view kNewsSection = "news";
/// The most that it takes: those that follow from incidents are left out first, and the oldest of them and of the
/// others.
inline constexpr std::size_t kNewsStateLimit = 32UL * 1024;

/// What must survive a restart, oldest first, as JSON; empty: there is nothing.
[[nodiscard]] std::string news_state_text(const std::vector<RecentNews>& news);

/// Reads what `news_state_text` made; what it did not make is left out.
[[nodiscard]] std::vector<News> parse_news_state(std::string_view text);

}  // namespace dhc
