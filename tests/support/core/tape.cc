#include "tests/support/core/tape.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/record/lines.h"
#include "app/record/rerun.h"
#include "base/rfc3339.h"
#include "tests/support/core/coverage.h"

namespace dhc::test {

namespace {

constexpr int kOneOfSchedules = 4;
constexpr int kOneOfFew = 8;

/// Where DHC_RECORDINGS names a folder, what tells of an eviction or of a credit is left there, under the test's name.
void keep(const std::string& text) {
  const char* folder = std::getenv("DHC_RECORDINGS");
  const bool tells = text.contains(R"("do":"EvictPod")") || text.contains(R"("do":"PatchJob")");
  if (folder == nullptr || !tells) return;
  static int kept = 0;
  std::string name = doctest::getContextOptions()->currentTest->m_name;
  for (auto& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  name.resize(std::min<std::size_t>(name.size(), 80));
  std::ofstream file(std::filesystem::path(folder) / fmt::format("{}-{}-{}.jsonl", name, getpid(), ++kept));
  file << text;
  if (!file) FAIL_CHECK("a recording could not be kept in DHC_RECORDINGS");
}

bool is_replayed() {
  static const bool each = std::getenv("DHC_EVERY_PLAN") != nullptr;
  static const bool few = std::getenv("DHC_FEW_PLANS") != nullptr;
  static int number_of_tape = 0;
  const auto* schedules = Coverage::running();
  if (each) return true;
  if (schedules != nullptr) return schedules->replays(few ? kOneOfFew : kOneOfSchedules);
  return !few || number_of_tape++ % kOneOfFew == 0;
}

}  // namespace

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
  keep(reel_->text);
  if (!is_replayed()) return;
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
