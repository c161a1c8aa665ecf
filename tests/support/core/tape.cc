#include "tests/support/core/tape.h"

#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/record/lines.h"
#include "app/record/rerun.h"
#include "base/rfc3339.h"

namespace dhc::test {

Tape::Tape(Controller& controller) : reel_(std::make_shared<Reel>()) {
  reel_->text = record::file_line("test", 1).text;
  controller.record_to(std::make_shared<record::Recorder>([reel = reel_](const record::Line& line) {
    const bool is_unknown = line.what == record::What::Answer && line.text.starts_with("{\"answer\":{\"n\":0");
    // No decoder lets bytes through that are no text.
    const bool is_mended = line.text.find("\xef\xbf\xbd") != std::string::npos;
    reel->is_good = reel->is_good && !is_unknown && !is_mended && reel->text.size() < kLongest;
    if (!reel->is_good) {
      reel->text.clear();
    } else {
      reel->text += line.text;
    }
  }));
}

std::string Tape::text() const { return reel_->text; }

Tape::~Tape() {
  record::Rerun rerun;
  std::string_view rest = reel_->text;
  std::size_t number = 0;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    ++number;
    if (auto fed = rerun.feed(rest.substr(0, end)); !fed) {
      FAIL_CHECK(fmt::format("line {} of the recording: {}\n{}", number, fed.error().message, rest.substr(0, end)));
      return;
    }
    rest.remove_prefix(end + 1);
  }
  const auto& report = rerun.report();
  if (report.differences == 0) return;
  const auto& first = report.first.front();
  FAIL_CHECK(fmt::format("a replay decides otherwise, {} times, first at {}\nrecorded: {}\nreplayed: {}",
                         report.differences, format_rfc3339(first.at), first.recorded, first.rerun));
}

}  // namespace dhc::test
