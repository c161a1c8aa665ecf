#include "app/record/rerun.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace dhc::record {

Status Rerun::feed(std::string_view line) {
  auto step = reader_.read(line);
  if (!step) return std::unexpected(std::move(step.error()));
  ++report_.lines;
  if (const auto* file = std::get_if<FileStep>(&*step)) return begin(*file);
  const auto plays = order_.plays(*step);
  if (!plays) return std::unexpected(plays.error());
  if (!*plays) return {};
  if (auto* message = std::get_if<MessageStep>(&*step)) {
    take(std::move(*message));
  } else if (const auto* taken = std::get_if<TakeStep>(&*step)) {
    note(taken->now);
    (void)controller_.take(inbox_, taken->now);
    inbox_.clear();
  } else if (const auto* planned = std::get_if<PlanStep>(&*step)) {
    for (const auto& told : reader_.told()) {
      if (told.of == Told::Of::Action) ++report_.actions[told.name];
    }
    if (!controller_.synced()) {
      auto missing = unlisted_.take();
      (void)controller_.take(missing, planned->now);
    }
    plan(planned->now, planned->stamp, line);
  } else if (const auto* idle = std::get_if<IdleStep>(&*step)) {
    for (const auto& now : idle->times) plan(now, {}, {});
  }
  return {};
}

Status Rerun::begin(const FileStep& file) {
  const auto is_new = order_.begin(file);
  if (!is_new) return std::unexpected(is_new.error());
  ++report_.files;
  if (std::ranges::find(report_.programs, file.program) == report_.programs.end())
    report_.programs.push_back(file.program);
  if (!*is_new) return {};
  ++report_.runs;
  compares_ = file.number == 1;
  if (!compares_) ++report_.not_compared;
  controller_ = Controller();
  decisions_ = Decisions();
  actions_ = 0;
  open_.clear();
  inbox_.clear();
  unlisted_ = Unlisted();
  return {};
}

void Rerun::take(MessageStep step) {
  if (auto* outcome = std::get_if<Outcome>(&step.message)) {
    const auto found = open_.find(step.answers);
    // Of what was asked for before the first file.
    if (found == open_.end()) return;
    outcome->action = std::move(found->second);
    open_.erase(found);
  }
  unlisted_.note(step.message);
  inbox_.push_back(std::move(step.message));
}

void Rerun::plan(const Now& now, const Stamp& stamp, std::string_view recorded) {
  note(now);
  ++report_.plans;
  auto turn = controller_.plan(now);
  (void)controller_.take_doubts();
  (void)controller_.take_coverage();
  (void)controller_.take_news();
  const auto line = decisions_.line(turn, controller_.verdicts(), stamp);
  for (auto& action : turn.actions) open_.emplace(++actions_, std::move(action));
  if (!compares_) return;
  auto rerun = line ? line->text : std::string();
  if (!rerun.empty()) rerun.pop_back();  // its line break
  if (rerun == recorded) return;
  ++report_.differences;
  if (report_.first.size() < kMostShown)
    report_.first.push_back({.at = now.wall, .recorded = std::string(recorded), .rerun = std::move(rerun)});
}

void Rerun::note(const Now& now) {
  report_.from = std::min(report_.from.value_or(now.wall), now.wall);
  report_.to = std::max(report_.to.value_or(now.wall), now.wall);
}

}  // namespace dhc::record
