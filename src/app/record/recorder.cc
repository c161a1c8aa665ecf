#include "app/record/recorder.h"

#include <utility>
#include <variant>

namespace dhc::record {

namespace {
// A crash loses no more of them.
constexpr std::size_t kMostIdle = 60;

/// Whether the Controller says of it that it changed nothing, if so.
bool may_change_nothing(const Message& message) {
  const auto* delivery = std::get_if<k8s::Delivery>(&message);
  return delivery != nullptr &&
         (std::holds_alternative<k8s::Upsert>(*delivery) || std::holds_alternative<k8s::Remove>(*delivery));
}
}  // namespace

void Recorder::hear(Message& message) {
  const auto* outcome = std::get_if<Outcome>(&message);
  const auto answers = outcome == nullptr ? 0 : take_number(outcome->action);
  lines_.clear();
  put_message(message, answers, lines_);
  always_ = !may_change_nothing(message);
}

void Recorder::heard(bool changes) {
  if (!always_ && !changes) return;
  put_idle();
  for (auto& line : lines_) sink_(std::move(line));
  heard_any_ = true;
}

void Recorder::took(const Now& now, bool matters) {
  if (!std::exchange(heard_any_, false) && !matters) return;
  put_idle();
  sink_(take_line(stamp(now)));
}

void Recorder::planned(const Turn& turn, const std::vector<Verdict>& verdicts, const Now& now) {
  for (const auto& action : turn.actions) open_.emplace(action_key(action), ++actions_);
  const auto at = stamp(now);
  if (auto line = decisions_.line(turn, verdicts, at)) {
    put_idle();
    return sink_(*std::move(line));
  }
  idle_.push_back(at);
  if (idle_.size() >= kMostIdle) put_idle();
}

Stamp Recorder::stamp(const Now& now) {
  if (!base_) {
    base_ = base_of(now);
    sink_(base_line(*base_));
  }
  return stamp_of(*base_, now);
}

std::uint64_t Recorder::take_number(const Action& action) {
  const auto found = open_.lower_bound(action_key(action));
  if (found == open_.end() || found->first != action_key(action)) return 0;
  const auto number = found->second;
  open_.erase(found);
  return number;
}

void Recorder::put_idle() {
  if (idle_.empty()) return;
  sink_(idle_line(idle_));
  idle_.clear();
}

}  // namespace dhc::record
