#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <re2/re2.h>

#include "domain/contract/reasons.h"

namespace {

using dhc::EventType;

/// The words of a cell without Markdown's marks: links keep their text, code its words.
std::string plain(std::string text) {
  RE2::GlobalReplace(&text, R"(\[([^\]]*)\]\([^)]*\))", R"(\1)");
  std::erase(text, '`');
  return text;
}

struct Row {
  std::string meaning;
  std::string remedy;
};

/// The rows of the page's tables, by reason.
std::map<std::string, Row> rows_of_page() {
  std::ifstream file("docs/verdicts.md");
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(file, line);) {
    Row row;
    std::string word;
    if (!RE2::FullMatch(line, R"(\| `(\w+)` \| (.*) \| (.*) \|)", &word, &row.meaning, &row.remedy)) continue;
    CAPTURE(word);
    CHECK(rows.insert({word, {plain(row.meaning), plain(row.remedy)}}).second);
  }
  return rows;
}

}  // namespace

TEST_CASE("the page about verdicts explains every reason once, in the table's own words, and no other") {
  auto rows = rows_of_page();
  for (const auto& info : dhc::all_reasons()) {
    CAPTURE(info.word);
    const auto row = rows.extract(std::string(info.word));
    REQUIRE(!row.empty());
    CHECK_MESSAGE(row.mapped().meaning.starts_with(info.meaning), "the page says: " << row.mapped().meaning);
    CHECK_MESSAGE(row.mapped().remedy.starts_with(info.remedy), "the page says: " << row.mapped().remedy);
  }
  for (const auto& [word, row] : rows) FAIL_CHECK("no such reason: " << word);
}

TEST_CASE("every reason has one sentence of meaning, one of remedy, and an action where it is told as an Event") {
  for (const auto& info : dhc::all_reasons()) {
    CAPTURE(info.word);
    CHECK(info.meaning.ends_with('.'));
    CHECK((info.remedy.ends_with('.') || info.remedy.ends_with('?')));
    CHECK((info.event == EventType::None) == info.action.empty());
  }
}
