#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "cli/plugin/explanation.h"
#include "cli/plugin/views.h"
#include "tests/core/cli/plugin/sample_sight.h"

TEST_CASE("the page about kubectl device-health shows what it really prints of the sample") {
  std::ifstream file("docs/kubectl.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto sight = dhc::test::sample_sight();
  const auto shows = [&](const std::string& command, const std::string& output) {
    CHECK_MESSAGE(page.find("$ kubectl device-health " + command + "\n" + output) != std::string::npos, output);
  };
  shows("devices", dhc::cli::table_of(dhc::cli::devices_lines(sight, {}, false)));
  shows("lemons", dhc::cli::table_of(dhc::cli::lemons_lines(sight, false)));
  const auto found =
      dhc::cli::explain_subject(sight, {.kind = dhc::cli::SubjectKind::Pod, .ns = "ml", .name = "train-0"});
  REQUIRE(found);
  const auto text = dhc::cli::explanation_text(sight, *found);
  shows("explain pod train-0 -n ml", text.substr(0, text.find("  ok ")));
}
