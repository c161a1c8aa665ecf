#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "domain/history/incident_table.h"

namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? std::string() : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The cells of a row of a Markdown table; none: the line is no row.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (!line.starts_with("| ") || !line.ends_with("|")) return cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

/// The rows of `docs/recovery.md` with so many cells, by the word that each begins with.
std::map<std::string, std::vector<std::string>> rows_of_page(std::size_t count) {
  std::ifstream file("docs/recovery.md");
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    auto cells = cells_of(line);
    if (cells.size() == count) rows.insert({cells.front().substr(0, cells.front().find(':')), std::move(cells)});
  }
  return rows;
}

}  // namespace

TEST_CASE("the page about recovery shows the table of incidents, every phase and every event") {
  auto rows = rows_of_page(1 + dhc::kIncidentPhases.size());
  const auto head = rows.extract("event");
  REQUIRE(!head.empty());
  for (std::size_t i = 0; i < dhc::kIncidentPhases.size(); ++i) {
    CHECK(head.mapped()[i + 1] == to_string(dhc::kIncidentPhases.at(i)));
  }
  for (const auto event : dhc::kIncidentEvents) {
    CAPTURE(to_string(event));
    const auto row = rows.extract(std::string(to_string(event)));
    REQUIRE(!row.empty());
    for (std::size_t i = 0; i < dhc::kIncidentPhases.size(); ++i) {
      const auto step = step_of(dhc::kIncidentPhases.at(i), event);
      const bool is_nothing = step.then == dhc::IncidentThen::Nothing;
      CHECK(row.mapped()[i + 1] == (is_nothing ? std::string_view() : to_string(step.to)));
    }
  }
  rows.erase("---");
  for (const auto& [word, cells] : rows) FAIL_CHECK("no such event: " << word);
}

TEST_CASE("the page about recovery says of every phase what is known in it and what leaves it") {
  const auto rows = rows_of_page(3);
  for (const auto phase : dhc::kIncidentPhases) {
    CAPTURE(to_string(phase));
    const auto row = rows.find(std::string(to_string(phase)));
    REQUIRE(row != rows.end());
    for (const auto& cell : row->second) CHECK_FALSE(cell.empty());
  }
}
