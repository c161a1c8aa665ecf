#include "tests/support/core/coverage.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <variant>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "reconcilers/eviction/gates.h"

namespace dhc::test {

namespace {

/// Beside the program, if the environment names no other folder.
std::filesystem::path file_of(const std::string& kind, int first, int end) {
  const char* folder = std::getenv("DHC_COVERAGE");
  const auto beside = [] { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "coverage"; };
  return (folder == nullptr ? beside() : std::filesystem::path(folder)) / fmt::format("{}-{}-{}.txt", kind, first, end);
}

}  // namespace

Coverage::Coverage(std::string kind, int first, int end) : kind_(std::move(kind)), first_(first), end_(end) {
  REQUIRE(running_ == nullptr);
  running_ = this;
  for (const auto phase : kIncidentPhases) {
    for (const auto event : kIncidentEvents) steps_[{phase, event}] = {};
  }
  for (const auto& info : all_reasons()) reasons_[info.reason] = {};
  // What an earlier run has counted is not what this one counts, also if it ends early.
  std::filesystem::remove(file_of(kind_, first_, end_));
}

Coverage::~Coverage() {
  running_ = nullptr;
  write();
}

void Coverage::begin_schedule(int seed) {
  seed_ = seed;
  const auto clear = [](auto& counts) {
    for (auto& [cell, count] : counts) count.in_this = false;
  };
  clear(steps_);
  clear(gates_);
  clear(reasons_);
  standing_.clear();
}

void Coverage::note(Count& count) const {
  ++count.times;
  if (!count.in_this) ++count.schedules;
  count.in_this = true;
}

void Coverage::note_step(IncidentPhase phase, IncidentEvent event) {
  if (running_ != nullptr && is_counting_) running_->note(running_->steps_[{phase, event}]);
}

void Coverage::look(std::span<const Verdict> verdicts, std::span<const Action> actions) {
  std::set<Standing> standing;
  for (const auto& verdict : verdicts) {
    const auto& subject = verdict.subject;
    Standing key(fmt::format("{} {}/{} {}", subject.kind, subject.ns, subject.name, subject.uid), verdict.device,
                 verdict.gate, verdict.reason);
    if (!standing_.contains(key)) {
      note(reasons_[verdict.reason]);
      if (!verdict.gate.empty()) note(gates_[{verdict.gate, verdict.reason}]);
    }
    standing.insert(std::move(key));
  }
  standing_ = std::move(standing);
  // Some reasons are told by an Event alone.
  for (const auto& action : actions) {
    const auto* event = std::get_if<notice::EmitEvent>(&action);
    if (event == nullptr) continue;
    for (const auto& info : all_reasons()) {
      if (info.word == event->reason && !info.from_verdict) note(reasons_[info.reason]);
    }
  }
}

void Coverage::write() const {
  const auto path = file_of(kind_, first_, end_);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path);
  file << "schedules\t" << kind_ << '\t' << first_ << '\t' << end_ << '\n';
  const auto put = [&](const std::string& cell, const Count& count) {
    file << cell << '\t' << count.times << '\t' << count.schedules << '\n';
  };
  for (const auto& [cell, count] : steps_)
    put(fmt::format("incident\t{}\t{}", to_string(cell.first), to_string(cell.second)), count);
  for (const auto& text : eviction::Gates::texts()) file << "order\t" << text.name << '\n';
  for (const auto& [cell, count] : gates_) put(fmt::format("gate\t{}\t{}", cell.first, to_string(cell.second)), count);
  for (const auto& [reason, count] : reasons_) put(fmt::format("reason\t\t{}", to_string(reason)), count);
}

}  // namespace dhc::test
