#include "reconcilers/notice/action.h"

#include <fmt/format.h>

namespace dhc::notice {

PodWords ApplyCondition::said() const {
  if (!wanted) return {.condition = {}, .message = {}, .notice = notice};
  return {.condition = wanted->status, .message = wanted->message, .notice = notice};
}

ActionFacts ApplyCondition::facts() const {
  return {.name = "ApplyCondition",
          .kind = "Pod",
          .ns = ns,
          .object = name,
          .uid = uid,
          .what = wanted ? std::string_view(wanted->reason) : std::string_view("removed"),
          .queue = Queue::Conditions};
}

std::string ApplyCondition::words() const {
  const std::string_view state = !wanted ? "removed" : wanted->status ? "True" : "False";
  return fmt::format("condition DeviceUnhealthy {} on {}/{}", state, ns, name);
}

std::optional<WriteKey> ApplyCondition::write_key() const { return std::nullopt; }

bool is_refused_for_notice(const ApplyCondition& action, const Status& status) {
  return !action.notice.empty() && !status && status.error().kind == ErrorKind::Contested;
}

ActionFacts EmitEvent::facts() const {
  return {.name = "EmitEvent",
          .kind = regarding.kind,
          .ns = regarding.ns,
          .object = regarding.name,
          .uid = regarding.uid,
          .what = reason,
          .queue = Queue::Events};
}

std::string EmitEvent::words() const {
  return fmt::format("Event {} on {} {}{}{}", reason, regarding.kind, regarding.ns, regarding.ns.empty() ? "" : "/",
                     regarding.name);
}

std::optional<WriteKey> EmitEvent::write_key() const { return std::nullopt; }

}  // namespace dhc::notice
